"""The runtime under its short name; inside a job that name comes from the files shipped with it."""

import openpaisdk.runtime
from openpaisdk.runtime import EVENTS, Peer, Place, Runtime

__all__ = ["EVENTS", "Peer", "Place", "Runtime"]

# `openpai.runtime.place` and the like are found too, as in a job.
__path__ = openpaisdk.runtime.__path__

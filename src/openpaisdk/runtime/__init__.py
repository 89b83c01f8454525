"""Our program inside the job: where it runs, callbacks, checkpoints. Standard library only, Python 3.6 up.

The folder is shipped to the job as it is, as `openpai.runtime`: its modules import only each other.
"""

from .app import EVENTS, Runtime
from .place import Peer, Place

__all__ = ["EVENTS", "Peer", "Place", "Runtime"]

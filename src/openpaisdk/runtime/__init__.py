"""Our program inside the job: where it runs, callbacks, checkpoints. Standard library only, Python 3.6 and newer.

The folder is shipped to the job as it is, under the name `openpai.runtime`, so its modules import only each other.
"""

from .app import EVENTS, Runtime
from .place import Peer, Place

__all__ = ["EVENTS", "Peer", "Place", "Runtime"]

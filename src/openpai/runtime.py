"""Re-exports the runtime; inside a job the same name comes from the files that were shipped with it."""

from openpaisdk.runtime import EVENTS, Peer, Place, Runtime

__all__ = ["EVENTS", "Peer", "Place", "Runtime"]

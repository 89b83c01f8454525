"""Who wants to know when a job changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable


class Changes:
    """Calls back, on the event loop, after a change of a job was stored. Nothing is queued for nobody."""

    def __init__(self) -> None:
        self._callbacks: dict[int, set[Callable[[], None]]] = {}

    def subscribe(self, job_id: int, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` after every change of this job; the answer ends that."""
        callbacks = self._callbacks.setdefault(job_id, set())
        callbacks.add(callback)

        def unsubscribe() -> None:
            callbacks.discard(callback)
            if not callbacks and self._callbacks.get(job_id) is callbacks:
                del self._callbacks[job_id]

        return unsubscribe

    def tell(self, job_ids: Iterable[int]) -> None:
        for job_id in job_ids:
            for callback in tuple(self._callbacks.get(job_id, ())):
                callback()

    def tell_all(self) -> None:
        """The server goes down: whoever waits should look and leave."""
        self.tell(list(self._callbacks))

    async def wait(self, job_id: int, timeout: float | None) -> bool:
        """Wait for the next change; False when it did not come in time."""
        changed = asyncio.Event()
        unsubscribe = self.subscribe(job_id, changed.set)
        try:
            await asyncio.wait_for(changed.wait(), timeout)
        except asyncio.TimeoutError:
            return False
        finally:
            unsubscribe()
        return True

"""The heart of the server: events in, the scheduler's decisions stored in one transaction, then acted on."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from openpaisdk.errors import ConflictError, UnavailableError
from openpaisdk.launchers import Launcher
from openpaisdk.protocol import debug_id, normalise_role, priority_class, totals
from openpaisdk.scheduler import (
    Action,
    Event,
    Explanation,
    JobCompleted,
    JobInfo,
    JobSubmitted,
    KillTasks,
    LaunchTasks,
    Scheduler,
    StopRequested,
    TaskCompleted,
    Tick,
    Usage,
    WakeAt,
    job_info,
)
from openpaisdk.server.accounts import Accounts
from openpaisdk.server.changes import Changes
from openpaisdk.server.database import Database
from openpaisdk.server.jobs import JobStore
from openpaisdk.server.listing import NO_CLASS
from openpaisdk.server.persist import Step, milliseconds
from openpaisdk.server.restore import unfinished_jobs
from openpaisdk.server.rows import JobRow
from openpaisdk.server.settings import Settings
from openpaisdk.server.tasks import Tasks, Write

log = logging.getLogger(__name__)
SHORTEST_PAUSE, LONGEST_PAUSE = 0.2, 5.0


class Loop:
    """Owns the scheduler and the tasks. Call everything on the event-loop thread."""

    def __init__(
        self,
        settings: Settings,
        db: Database,
        store: JobStore,
        accounts: Accounts,
        launcher: Launcher,
        scheduler: Scheduler,
        *,
        addresses: Mapping[str, str],
        uri: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.changes = Changes()
        self.tasks = Tasks(settings, store, accounts, launcher, self._post, uri=uri)
        self._db = db
        self._store = store
        self._scheduler = scheduler
        self._addresses = addresses
        self._clock = clock
        self._jobs: dict[str, JobInfo] = {}
        self._active: set[tuple[str, str]] = set()
        self._inbox: list[tuple[Event | None, Write | None]] = []
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._runner: asyncio.Task[None] | None = None
        accounts.tokens.job_is_active = self.is_active

    def start(self) -> list[str]:
        """Take up what an earlier server left, then run until `close`; the code that unfinished jobs need."""
        restored = unfinished_jobs(self._store)
        for found in restored:
            self._jobs[found.info.id] = found.info
            self._active.add((found.row.user, found.row.name))
        handles = {ref: handle for found in restored for ref, handle in found.handles.items()}
        actions = self._scheduler.restore([found.record for found in restored], self._clock())
        self.tasks.adopt(handles)
        self._runner = asyncio.get_running_loop().create_task(self._run(actions))
        return [found.manifest for found in restored if found.manifest]

    async def close(self) -> None:
        """Stop deciding and acting; tasks go on."""
        await self.tasks.close()
        if self._runner is not None:
            await self._settled()
            self._runner.cancel()
            await asyncio.gather(self._runner, return_exceptions=True)
        if self._timer is not None:
            self._timer.cancel()
        self.changes.tell_all()

    async def _settled(self) -> None:
        """Wait until everything posted so far is stored, but not for a store that takes nothing."""
        try:
            await asyncio.wait_for(self._idle.wait(), 2.0)
        except asyncio.TimeoutError:
            log.warning("closing with %d events that could not be stored", len(self._inbox))

    def is_active(self, user: str, job: str) -> bool:
        """True while a job is not over: its own token holds that long."""
        return (user, job) in self._active

    async def submit(
        self, user: str, spec: dict[str, Any], *, key: str | None = None, refuse_unfit: bool = True
    ) -> JobRow:
        """Store a valid job and queue it; the same user and key again give the same job."""
        if key is not None and (earlier := self._store.by_submit_key(user, key)):
            return earlier
        name = spec["name"]
        if self._store.find(user, name):
            raise _taken(user, name)
        now = self._clock()
        if refuse_unfit:
            self._scheduler.admit(job_info(spec, id="", user=user, number=0, submitted_at=now))
        columns = _job_columns(user, spec, milliseconds(now))
        text = msgspec.json.encode(spec).decode()
        try:
            job_id = await self._db.write(
                lambda connection: JobStore.insert_job(connection, columns, text, submit_key=key)
            )
        except sqlite3.IntegrityError:
            if key is not None and (earlier := self._store.by_submit_key(user, key)):
                return earlier
            raise _taken(user, name) from None
        info = job_info(spec, id=str(job_id), user=user, number=job_id, submitted_at=now)
        self._jobs[info.id] = info
        self._active.add((user, name))
        self._post(JobSubmitted(info), None)
        row = self._store.by_id(job_id)
        if row is None:
            raise _taken(user, name)
        return row

    async def stop(self, job: JobRow) -> None:
        """Note that somebody wants the job stopped, and have it done."""
        if job.finished:
            return
        await self._db.write(
            lambda connection: JobStore.update_job(connection, job.id, {"execution_type": "STOP"})
        )
        self.changes.tell([job.id])
        self._post(StopRequested(str(job.id)), None)

    async def write_job(self, job_id: int, change: Callable[[sqlite3.Connection], Any]) -> Any:
        """A change of a job that concerns no scheduling (tags)."""
        found = await self._db.write(change)
        self.changes.tell([job_id])
        return found

    def why(self, job: JobRow) -> Explanation:
        """Why an unfinished job is where it is."""
        if str(job.id) not in self._scheduler:
            return Explanation(f"{job.path} has just come in and is about to be looked at")
        return self._scheduler.why(str(job.id), self._clock())

    def usage(self) -> Usage:
        return self._scheduler.usage()

    def _post(self, event: Event | None, write: Write | None) -> None:
        self._inbox.append((event, write))
        self._idle.clear()
        self._wake.set()

    async def _run(self, actions: list[Action]) -> None:
        await self._carry_out(actions, [])
        while True:
            if not self._inbox:
                self._idle.set()
            await self._wake.wait()
            self._wake.clear()
            batch, self._inbox = self._inbox, []
            try:
                await self._turn(batch)
            except Exception:  # the loop must not die of one event
                log.exception("a turn of the loop failed")

    async def _turn(self, batch: list[tuple[Event | None, Write | None]]) -> None:
        events = [event for event, _ in batch if event is not None]
        await self._carry_out(self._decide(events), [write for _, write in batch if write is not None])

    def _decide(self, events: list[Event]) -> list[Action]:
        now = self._clock()
        try:
            return self._scheduler.handle_all(events, now) if events else []
        except Exception:
            log.exception("the scheduler failed over %d events; taking them one by one", len(events))
        actions: list[Action] = []
        for event in events:  # an event that was taken already changes nothing
            try:
                actions += self._scheduler.handle(event, now)
            except Exception:
                log.exception("the scheduler refused %r", event)
        return actions

    async def _carry_out(self, actions: list[Action], writes: list[Write]) -> None:
        if not actions and not writes:
            return
        step = Step(
            now=self._clock(), jobs=self._jobs, addresses=self._addresses, outcomes=self.tasks.outcomes
        )

        def store(connection: sqlite3.Connection) -> None:
            for write in writes:
                write(connection)
            step.store(connection, actions)

        await self._store_for_sure(store)
        self._act(actions)
        self.changes.tell(_job_ids(actions))

    async def _store_for_sure(self, write: Callable[[sqlite3.Connection], None]) -> None:
        """Nothing is acted on before it is stored, so a full disk makes everything here wait."""
        pause = SHORTEST_PAUSE
        while True:
            try:
                return await self._db.write(write)
            except UnavailableError as error:
                log.error("%s; trying again in %.1f s", error.message, pause)
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)

    def _act(self, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, LaunchTasks):
                self.tasks.launch(action)
            elif isinstance(action, KillTasks):
                self.tasks.kill(action)
            elif isinstance(action, TaskCompleted):
                self.tasks.forget(action.task)
            elif isinstance(action, JobCompleted):
                info = self._jobs.pop(action.job_id, None)
                if info is not None:
                    self._active.discard((info.user, info.name.partition("~")[2]))
            elif isinstance(action, WakeAt):
                self._wake_at(action.at)

    def _wake_at(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        delay = max(0.0, at - self._clock())
        self._timer = asyncio.get_running_loop().call_later(delay, self._post, Tick(), None)


def _job_ids(actions: list[Action]) -> set[int]:
    found = set()
    for action in actions:
        ref = getattr(action, "task", None)
        job_id = ref.job_id if ref is not None else getattr(action, "job_id", None)
        if job_id is not None:
            found.add(int(job_id))
    return found


def _job_columns(user: str, spec: dict[str, Any], submitted: int) -> dict[str, Any]:
    gpus, tasks, roles = totals(spec)
    name = spec["name"]
    return {
        "user": user,
        "name": name,
        "debug_id": debug_id(user, name),
        "uid": str(uuid.uuid4()),
        "state": "WAITING",
        "sub_state": "AttemptCreationPending",
        "submitted": submitted,
        "vc": (spec.get("defaults") or {}).get("virtualCluster") or "default",
        "gpus": gpus,
        "tasks": tasks,
        "roles": roles,
        "priority": priority_class(spec) or NO_CLASS,
        "role_names": ",".join(normalise_role(role) for role in spec["taskRoles"]),
    }


def _taken(user: str, name: str) -> ConflictError:
    return ConflictError(
        f"Job {user}~{name} already exists.",
        code="ConflictJobError",
        hint="names are used once; choose another",
    )

"""Acts on what the scheduler decided: launches and kills tasks, and reports what became of them."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from openpaisdk.errors import OpenPAIError, UnavailableError
from openpaisdk.launchers import Launcher, LaunchError, Observation
from openpaisdk.scheduler import (
    Event,
    KillTasks,
    LaunchFailed,
    LaunchTasks,
    Placement,
    TaskEnded,
    TaskLost,
    TaskPreparing,
    TaskRef,
    TaskStart,
    TaskStarted,
)
from openpaisdk.server import exits, launching
from openpaisdk.server.accounts import Accounts
from openpaisdk.server.jobs import JobStore
from openpaisdk.server.persist import milliseconds, task_key
from openpaisdk.server.rows import TaskRow
from openpaisdk.server.saving import Saved, Savings, describe
from openpaisdk.server.settings import Settings

log = logging.getLogger(__name__)

Write = Callable[[sqlite3.Connection], None]
Post = Callable[[Event | None, Write | None], None]
NEVER_STARTED = -220
PREPARING = frozenset({"Pulling"})  # what a launcher says before a task can run
CLOSE_SECONDS = 5.0
SHORTEST_PAUSE, LONGEST_PAUSE = 1.0, 60.0


class _Launch:
    """One gang on its way up."""

    __slots__ = ("doomed", "refs", "task")

    def __init__(self, refs: Iterable[TaskRef]) -> None:
        self.refs = frozenset(refs)
        self.doomed: set[TaskRef] = set()
        self.task: asyncio.Task[None] | None = None


class Tasks:
    """The tasks that run, or are about to, and their handles. All of it happens on the event-loop thread.

    `post(event, write)` hands the loop an event together with what has to be stored with it.
    """

    def __init__(
        self,
        settings: Settings,
        store: JobStore,
        accounts: Accounts,
        launcher: Launcher,
        post: Post,
        *,
        uri: str,
    ) -> None:
        self._settings = settings
        self._store = store
        self._accounts = accounts
        self._launcher = launcher
        self._post = post
        self.uri = uri
        self._savings = Savings(settings, store)
        self.outcomes: dict[TaskRef, dict[str, Any]] = {}
        self._handles: dict[TaskRef, str] = {}
        self._refs: dict[str, TaskRef] = {}
        self._by_key: dict[str, TaskRef] = {}
        self._keys: dict[TaskRef, str] = {}
        self._reported: set[TaskRef] = set()
        self._launches: dict[TaskRef, _Launch] = {}
        self._early_exits: set[str] = set()
        self._ended: set[str] = set()
        self._busy: set[asyncio.Task[None]] = set()
        # One at a time: searching megabytes holds the interpreter for tens of milliseconds.
        self._judge = ThreadPoolExecutor(max_workers=1, thread_name_prefix="judge")
        launcher.subscribe(self._on_exit, self._on_event)

    def adopt(self, handles: dict[TaskRef, str]) -> None:
        """Take up tasks of an earlier server; those that ended meanwhile are reported at once."""
        for ref, handle in handles.items():
            self._know(ref, handle)
        for handle, seen in self._launcher.observe(handles.values()).items():
            if seen.state != "running":
                self._report(self._refs[handle], handle, seen)

    def handle_of(self, ref: TaskRef) -> str | None:
        return self._handles.get(ref)

    def launch(self, action: LaunchTasks) -> None:
        """Start a gang in the background; safe to repeat."""
        refs = [start.task for start in action.tasks]
        if any(ref in self._launches for ref in refs):
            return
        launch = _Launch(refs)
        self._launches.update(dict.fromkeys(refs, launch))
        launch.task = self._spawn(self._launch(action, launch))

    async def _launch(self, action: LaunchTasks, launch: _Launch) -> None:
        refs = [start.task for start in action.tasks]
        try:
            handles = await self._start(action)
        except asyncio.CancelledError:
            if not launch.doomed:
                raise
            self._all_gone(refs)
            return
        except LaunchError as error:
            self._refused(refs, error.message, error.task_code)
            return
        except (OpenPAIError, OSError) as error:
            self._refused(refs, str(error), LaunchError().task_code)
            return
        except Exception as error:
            log.exception("launching %s failed", action.job_id)
            self._refused(refs, f"the server failed to start it: {error}", LaunchError().task_code)
            return
        finally:
            for ref in refs:
                self._launches.pop(ref, None)
        self._came_up(refs, handles, launch.doomed)

    async def _start(self, action: LaunchTasks) -> list[str]:
        job_id = int(action.job_id)
        job, spec = self._store.by_id(job_id), self._store.spec(job_id)
        attempt = self._store.attempt(job_id, action.attempt)
        if job is None or spec is None or attempt is None:
            raise LaunchError(f"job {action.job_id} is not in the store any more")
        self._savings.learn(action.job_id, spec)
        gang = launching.build(
            self._settings,
            job,
            attempt,
            spec,
            tasks=self._store.tasks(job_id, action.attempt),
            wanted=[(start.task.role, start.task.index) for start in action.tasks],
            uri=self.uri,
            token=self._accounts.issue_job_token(job.user, job.name),
        )
        for task, start in zip(gang, action.tasks):
            self._by_key[task.key] = start.task
            self._keys[start.task] = task.key
        if launching.code_manifest(spec):
            await asyncio.to_thread(launching.prepare_folders, self._settings, job, spec, gang)
        else:
            launching.prepare_folders(self._settings, job, spec, gang)
        return await self._launcher.launch(gang)

    def _came_up(self, refs: list[TaskRef], handles: list[str], doomed: set[TaskRef]) -> None:
        started = self._launcher.observe(handles)
        for ref, handle in zip(refs, handles):
            self._know(ref, handle)
            self._post(
                TaskStarted(ref, started[handle].started_at or time.time()), _store_handle(ref, handle)
            )
        for handle in handles:
            if handle in self._early_exits:
                self._early_exits.discard(handle)
                self._on_exit(handle)
        if doomed:
            self._spawn(self._kill([self._handles[ref] for ref in doomed if ref in self._handles], 0.0))

    def _refused(self, refs: list[TaskRef], reason: str, code: int) -> None:
        self._post(LaunchFailed(tuple(refs), reason, time.time(), code), None)

    def _all_gone(self, refs: Iterable[TaskRef]) -> None:
        for ref in refs:
            self._post(TaskEnded(ref, NEVER_STARTED, time.time(), "it was stopped before it ran"), None)

    def kill(self, action: KillTasks) -> None:
        """End tasks in the background; one that is still coming up is stopped on its way."""
        handles: list[str] = []
        for ref in action.tasks:
            launch = self._launches.get(ref)
            if ref in self._handles:
                handles.append(self._handles[ref])
            elif launch is not None:
                launch.doomed.add(ref)
                if launch.doomed == launch.refs and launch.task is not None:
                    launch.task.cancel()
            elif ref not in self._reported:
                self._kill_unknown(ref, action)
        if handles:
            self._spawn(self._kill(handles, action.grace))

    def _kill_unknown(self, ref: TaskRef, action: KillTasks) -> None:
        """A task whose start was decided by a server that died before it could store a handle."""
        folder = self._settings.task_folder(
            int(ref.job_id), ref.attempt, ref.role, ref.index, ref.task_attempt
        )
        if not folder.exists():
            self._all_gone([ref])
            return
        # Launching again starts nothing twice and tells the handle; what it may start, it ends at once.
        launch = _Launch([ref])
        launch.doomed.add(ref)
        self._launches[ref] = launch
        row = self._store.task_attempt(*task_key(ref), ref.task_attempt)
        again = LaunchTasks(action.job_id, ref.attempt, (_again(ref, row),), time.time())
        launch.task = self._spawn(self._launch(again, launch))

    async def _kill(self, handles: list[str], grace: float) -> None:
        pause = SHORTEST_PAUSE
        while True:
            try:
                return await self._launcher.kill(handles, grace=grace)
            except UnavailableError as error:
                log.error("%s; killing again in %.0f s", error.message, pause)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    def _on_exit(self, handle: str) -> None:
        if handle not in self._refs:
            self._early_exits.add(handle)
            return
        if not self._ended:
            asyncio.get_running_loop().call_soon(self._look_at_ended)
        self._ended.add(handle)

    def _look_at_ended(self) -> None:
        ended, self._ended = self._ended, set()
        for handle, seen in self._launcher.observe(ended).items():
            ref = self._refs.get(handle)
            if ref is not None and seen.state != "running":
                self._report(ref, handle, seen)

    def _report(self, ref: TaskRef, handle: str, seen: Observation) -> None:
        self._handles.pop(ref, None)
        self._refs.pop(handle, None)
        self._reported.add(ref)
        save = self._savings.plan(ref)
        failed = seen.exit is not None and (seen.exit.code != 0 or seen.exit.oom)
        if save is not None or failed:
            self._spawn(self._settle(ref, handle, seen, save))
        elif seen.exit is None:
            self._post(TaskLost(ref, time.time()), None)
        else:
            self._post(TaskEnded(ref, 0, seen.exit.at or time.time()), None)

    async def _settle(
        self, ref: TaskRef, handle: str, seen: Observation, save: Callable[[], Saved] | None
    ) -> None:
        """Save files and judge the exit in a thread; the end is known only after that, so that a server
        which dies meanwhile leaves it all to the next."""
        write = None
        if save is not None:
            try:
                saved = await asyncio.to_thread(save)
            except Exception as error:  # the task has ended all the same
                log.exception("saving the files of %s failed", ref)
                saved = Saved(0, 0, (f"the server failed: {error}",))
            write = self._event(ref, *describe(saved), component="outputs")
        if seen.exit is None:
            self._post(TaskLost(ref, time.time()), write)
            return
        try:
            verdict = await asyncio.get_running_loop().run_in_executor(
                self._judge, exits.judge, seen.exit, self.log_files(handle)
            )
        except Exception:  # the task has ended all the same
            log.exception("the exit of %s could not be classified", ref)
            verdict = exits.Verdict(exits.UNCLASSIFIED, {})
        if verdict.outcome:
            self.outcomes[ref] = verdict.outcome
        self._post(TaskEnded(ref, verdict.code, seen.exit.at or time.time()), write)

    def log_files(self, handle: str) -> dict[str, Path | None]:
        """The files that grow while a task runs, by the name people know them by."""
        found: dict[str, Path | None] = {
            "stdout": self._launcher.log_path(handle, "stdout"),
            "stderr": self._launcher.log_path(handle, "stderr"),
        }
        stdout = found["stdout"]
        if stdout is not None:
            for name in ("runtime.log", "logging.jsonl"):
                found[name] = stdout.parent / name
        return found

    def _on_event(self, key: str, type_: str, reason: str, message: str) -> None:
        ref = self._by_key.get(key)
        if ref is None:
            log.info("%s: %s: %s", key, reason, message)
            return
        write = self._event(ref, type_, reason, message, component=self._launcher.name)
        coming_up = ref in self._launches and ref not in self._handles
        self._post(TaskPreparing(ref) if coming_up and reason in PREPARING else None, write)

    def _event(self, ref: TaskRef, type_: str, reason: str, message: str, *, component: str) -> Write:
        """What stores a line of the job's events."""
        at = milliseconds(time.time())

        def write(connection: sqlite3.Connection) -> None:
            JobStore.insert_event(
                connection,
                int(ref.job_id),
                at=at,
                type_=type_ if type_ == "Warning" else "Normal",
                reason=reason,
                message=message,
                role=ref.role,
                index=ref.index,
                component=component,
            )
            JobStore.update_job(connection, int(ref.job_id), {})

        return write

    def _know(self, ref: TaskRef, handle: str) -> None:
        self._handles[ref] = handle
        self._refs[handle] = ref

    def forget(self, ref: TaskRef) -> None:
        """The store has it that this task attempt is over."""
        self.outcomes.pop(ref, None)
        self._reported.discard(ref)
        self._by_key.pop(self._keys.pop(ref, ""), None)

    def _spawn(self, coroutine: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(coroutine)
        self._busy.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._busy.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("acting on tasks failed", exc_info=task.exception())

    async def close(self) -> None:
        """Stop acting; what runs goes on. A gang that is just coming up is given a moment to get there."""
        launches = {launch.task for launch in self._launches.values() if launch.task is not None}
        if launches:
            await asyncio.wait(launches, timeout=CLOSE_SECONDS)
        for task in list(self._busy):
            task.cancel()
        await asyncio.gather(*self._busy, return_exceptions=True)
        self._judge.shutdown(wait=False)
        await self._launcher.close()


def _store_handle(ref: TaskRef, handle: str) -> Write:
    def write(connection: sqlite3.Connection) -> None:
        JobStore.update_task_attempts(connection, [(*task_key(ref), ref.task_attempt)], {"handle": handle})

    return write


def _again(ref: TaskRef, row: TaskRow | None) -> TaskStart:
    return TaskStart(ref, row.attempt_uid or "" if row else "", Placement(row.node or "" if row else ""))

"""The one SQLite file: readers on the calling thread, and one writer thread that commits in groups."""

from __future__ import annotations

import asyncio
import importlib
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from openpaisdk.errors import ConfigError, OpenPAIError, UnavailableError

T = TypeVar("T")
log = logging.getLogger(__name__)

SCHEMAS = ("openpaisdk.server.jobs", "openpaisdk.server.accounts")
SCHEMA_VERSION = 1
BUSY_TIMEOUT_MS = 10_000
# Small, because a server at rest keeps all of it, and the system caches the file anyway.
READ_CACHE_KB, WRITE_CACHE_KB = 4000, 8000
LARGEST_GROUP = 1000  # writes per transaction: bounds how long the first one waits for its answer


class _Write(NamedTuple):
    fn: Callable[[sqlite3.Connection], Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


class Database:
    """Durable state of the server.

    `read` serves short queries on the event-loop thread, `query` long ones on a thread of their own. `write`
    runs a function inside the next group commit and returns once that is on the disk (synchronous=FULL:
    measured at 0.2 ms per group, so nothing was gained by giving it up).
    """

    def __init__(self, path: str | Path, *, schemas: tuple[str, ...] = SCHEMAS) -> None:
        self.path = Path(path)
        opened: list[sqlite3.Connection] = []
        try:
            self._writer = self._connect(opened)
            self._prepare(schemas)
            self.read = self._connect(opened, read_only=True)
        except ConfigError:
            _close(opened)
            raise
        except sqlite3.Error as error:
            _close(opened)
            raise ConfigError(
                f"cannot use {self.path}: {error}",
                hint="look at its permissions and the disk; put a backup in its place, or start with another "
                "--data-dir",
            ) from error
        self._thread_local = threading.local()
        self._slow_connections: list[sqlite3.Connection] = []
        self._slow = ThreadPoolExecutor(max_workers=2, thread_name_prefix="database-read")
        self._lock = threading.Lock()
        self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write_groups, name="database-write", daemon=True)
        self._thread.start()
        self._closed = False

    def _connect(self, opened: list[sqlite3.Connection], *, read_only: bool = False) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, isolation_level=None, check_same_thread=False, cached_statements=512
        )
        opened.append(connection)
        connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
        if read_only:
            connection.execute("PRAGMA query_only = ON")
            connection.execute(f"PRAGMA cache_size = -{READ_CACHE_KB}")
        else:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(f"PRAGMA cache_size = -{WRITE_CACHE_KB}")
        return connection

    def _prepare(self, schemas: tuple[str, ...]) -> None:
        found = int(self._writer.execute("PRAGMA user_version").fetchone()[0])
        if found > SCHEMA_VERSION:
            raise ConfigError(
                f"{self.path} is of a newer version: schema {found}, this one knows {SCHEMA_VERSION}",
                hint="upgrade openpaisdk, or start with another --data-dir",
            )
        for name in schemas:
            self._writer.executescript(importlib.import_module(name).SCHEMA)
        self._writer.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    async def write(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """Run `fn` in the next transaction; returns its value when the commit is durable.

        What `fn` raises undoes its own statements only and is raised here. A disk that is full or failing
        raises UnavailableError, and nothing of the group is kept.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._queue.put(_Write(fn, loop, future))
        return await future

    def write_now(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """The same, blocking: for start-up, before there is an event loop."""
        with self._lock:
            value, error = self._commit([fn])[0]
        if error is not None:
            raise error
        return value  # type: ignore[no-any-return]

    async def query(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """Run a long read on its own thread and connection."""
        return await asyncio.get_running_loop().run_in_executor(self._slow, self._read_slowly, fn)

    def _read_slowly(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        connection = getattr(self._thread_local, "connection", None)
        if connection is None:
            connection = self._connect(self._slow_connections, read_only=True)
            self._thread_local.connection = connection
        return fn(connection)

    def _write_groups(self) -> None:
        while True:
            first = self._queue.get()
            if first is None:
                return
            group = [first]
            last = False
            while len(group) < LARGEST_GROUP:
                try:
                    item = self._queue.get_nowait()
                except queue.Empty:
                    break
                if item is None:
                    last = True
                    break
                group.append(item)
            with self._lock:
                results = self._commit([item.fn for item in group])
            _deliver(group, results)
            if last:
                return

    def _commit(
        self, fns: list[Callable[[sqlite3.Connection], Any]]
    ) -> list[tuple[Any, BaseException | None]]:
        connection = self._writer
        results: list[tuple[Any, BaseException | None]] = []
        try:
            connection.execute("BEGIN IMMEDIATE")
            for fn in fns:
                results.append(self._run_one(connection, fn))
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if connection.in_transaction:
                connection.rollback()
            log.error("cannot write to %s: %s", self.path, error)
            problem = unwritable(error)
            return [(None, problem)] * len(fns)
        return results

    def _run_one(
        self, connection: sqlite3.Connection, fn: Callable[[sqlite3.Connection], Any]
    ) -> tuple[Any, BaseException | None]:
        connection.execute("SAVEPOINT one")
        try:
            value = fn(connection)
        except sqlite3.OperationalError as error:
            if not connection.in_transaction:  # SQLite gave up the whole transaction
                raise
            connection.execute("ROLLBACK TO one")
            connection.execute("RELEASE one")
            log.error("cannot write to %s: %s", self.path, error)
            return None, unwritable(error)
        except Exception as error:  # noqa: BLE001 - handed to the caller that waits for it
            connection.execute("ROLLBACK TO one")
            connection.execute("RELEASE one")
            return None, error
        connection.execute("RELEASE one")
        return value, None

    def close(self) -> None:
        """Finish the writes under way and let go of the file."""
        if self._closed:
            return
        self._closed = True
        self._queue.put(None)
        self._thread.join()
        self._slow.shutdown()
        _close([*self._slow_connections, self.read, self._writer])


def _close(connections: list[sqlite3.Connection]) -> None:
    for connection in connections:
        connection.close()


def unwritable(error: sqlite3.Error) -> OpenPAIError:
    """What a client is told while the store takes no writes; it may try again."""
    hint = "free some space on the disk with the server's data folder, then try again"
    if "locked" in str(error):
        hint = "another program holds the server's database, perhaps a backup; try again when it is done"
    return UnavailableError(f"the server cannot store anything at the moment ({error})", hint=hint)


def _deliver(group: list[_Write], results: list[tuple[Any, BaseException | None]]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any, BaseException | None]]] = {}
    for item, (value, error) in zip(group, results):
        by_loop.setdefault(item.loop, []).append((item.future, value, error))
    for loop, answers in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle, answers)
        except RuntimeError:  # that loop is closed: nobody waits any more
            continue


def _settle(answers: list[tuple[asyncio.Future[Any], Any, BaseException | None]]) -> None:
    for future, value, error in answers:
        if future.done():
            continue
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)

"""Commands that people run inside a running task: pipes or a terminal, read and written over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import secrets
import signal
import struct
import termios
from collections.abc import AsyncIterator, Callable
from typing import Any

from openpaisdk.errors import ConflictError, NotFoundError
from openpaisdk.launchers import Launcher

CHUNK = 32 * 1024
LARGEST_BACKLOG = 1 << 20  # output nobody has fetched: beyond this the command is made to wait
UNATTENDED_SECONDS = 60.0
DRAIN_SECONDS = 0.5
# The first terminal that the leader of a session opens becomes its controlling one.
ON_TERMINAL = 'exec "$@" <>"$0" >&0 2>&0'

Frame = tuple[str, bytes]


class Session:
    """One command; `frames()` gives its output, once, to one reader."""

    def __init__(self, owner: str, job_id: int, on_done: Callable[[str], None]) -> None:
        self.id = secrets.token_hex(12)
        self.owner = owner
        self.job_id = job_id
        self._on_done = on_done
        self._frames: list[Frame] = []
        self._size = 0
        self._changed = asyncio.Event()
        self._drained = asyncio.Event()
        self._drained.set()
        self._process: asyncio.subprocess.Process | None = None
        self._terminal: int | None = None
        self._far_side: int | None = None
        self._reading = False
        self._tasks: list[asyncio.Task[None]] = []
        self._expiry: asyncio.TimerHandle | None = None

    async def start(
        self, argv: list[str], env: dict[str, str], cwd: str | None, *, size: tuple[int, int] | None
    ) -> None:
        """Run it; with a `size` (rows, columns) on a terminal of its own."""
        if size is None:
            self._process = await asyncio.create_subprocess_exec(
                *argv,
                env=env,
                cwd=cwd,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
            readers = [
                self._copy("out", self._process.stdout),
                self._copy("err", self._process.stderr),
            ]
        else:
            parent, child = pty.openpty()
            try:
                set_size(parent, *size)
                self._process = await asyncio.create_subprocess_exec(
                    *("/bin/sh", "-c", ON_TERMINAL, os.ttyname(child), *argv),
                    env=env,
                    cwd=cwd,
                    stdin=asyncio.subprocess.DEVNULL,
                    start_new_session=True,
                )
            except BaseException:
                os.close(parent)
                os.close(child)
                raise
            os.set_blocking(parent, False)
            self._terminal, self._far_side = parent, child
            readers = [self._copy_terminal(parent)]
        self._tasks = [asyncio.get_running_loop().create_task(self._finish(readers))]
        self._expire_later()

    async def _copy(self, name: str, stream: asyncio.StreamReader | None) -> None:
        while stream is not None and (data := await stream.read(CHUNK)):
            await self._put(name, data)

    async def _copy_terminal(self, fd: int) -> None:
        loop = asyncio.get_running_loop()
        while True:
            readable = loop.create_future()
            loop.add_reader(fd, _wake, readable)
            try:
                await readable
            finally:
                if self._terminal is not None:
                    loop.remove_reader(fd)
            try:
                data = os.read(fd, CHUNK)
            except BlockingIOError:
                continue
            except OSError:  # the last process closed its side
                return
            if not data:
                return
            await self._put("out", data)

    async def _put(self, name: str, data: bytes) -> None:
        await self._drained.wait()
        self._frames.append((name, data))
        self._size += len(data)
        if self._size > LARGEST_BACKLOG:
            self._drained.clear()
        self._changed.set()

    async def _finish(self, readers: list[Any]) -> None:
        copying = asyncio.gather(*readers)
        try:
            if self._terminal is None:
                await copying
            code = await self._process.wait() if self._process else 0
            self._close_far_side()
            # What the command left in the background may hold its terminal for ever.
            await asyncio.wait({asyncio.ensure_future(copying)}, timeout=DRAIN_SECONDS)
        finally:
            copying.cancel()
        shown = code if code >= 0 else 128 - code
        self._frames.append(("exit", str(shown).encode()))
        self._changed.set()

    async def frames(self) -> AsyncIterator[Frame]:
        """Output as it comes, then the exit code; leaving early ends the command."""
        if self._reading:
            raise ConflictError("somebody reads the output of this session already")
        self._reading = True
        if self._expiry is not None:
            self._expiry.cancel()
        try:
            while True:
                await self._changed.wait()
                self._changed.clear()
                frames, self._frames, self._size = self._frames, [], 0
                self._drained.set()
                for frame in frames:
                    yield frame
                    if frame[0] == "exit":
                        return
        finally:
            self.end()

    async def feed(self, data: bytes, *, eof: bool) -> None:
        """Input for the command."""
        if self._terminal is not None:
            await self._feed_terminal(data + (b"\x04" if eof else b""))
            return
        stdin = self._process.stdin if self._process else None
        if stdin is None or stdin.is_closing():
            return
        with contextlib.suppress(ConnectionError):
            stdin.write(data)
            await stdin.drain()
            if eof:
                stdin.close()

    async def _feed_terminal(self, data: bytes) -> None:
        while data and self._terminal is not None:
            try:
                data = data[os.write(self._terminal, data) :]
            except BlockingIOError:
                await asyncio.sleep(0.01)
            except OSError:
                return

    def resize(self, rows: int, columns: int) -> None:
        if self._terminal is None:
            raise ConflictError("this session has no terminal", hint='start it with "tty": true')
        set_size(self._terminal, rows, columns)

    def _close_far_side(self) -> None:
        """Ours of the terminal's two ends; held until the command, which opens its own, has ended."""
        if self._far_side is not None:
            os.close(self._far_side)
            self._far_side = None

    def _expire_later(self) -> None:
        self._expiry = asyncio.get_running_loop().call_later(UNATTENDED_SECONDS, self.end)

    def end(self) -> None:
        """Kill what still runs and forget the session."""
        if self._expiry is not None:
            self._expiry.cancel()
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        for task in self._tasks:
            task.cancel()
        self._close_far_side()
        if self._terminal is not None:
            asyncio.get_running_loop().remove_reader(self._terminal)
            os.close(self._terminal)
            self._terminal = None
        self._on_done(self.id)

    async def ended(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._process is not None:
            await self._process.wait()


class ExecSessions:
    """The sessions of a server."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self._sessions: dict[str, Session] = {}

    async def open(
        self, owner: str, job_id: int, handle: str, command: list[str], *, size: tuple[int, int] | None
    ) -> Session:
        """Start a command in a task."""
        plan = self._launcher.exec_command(handle, command, tty=size is not None)
        session = Session(owner, job_id, self._forget)
        try:
            await session.start(plan.argv, plan.env, plan.cwd, size=size)
        except OSError as error:
            raise ConflictError(f"the command could not be started: {error}") from error
        self._sessions[session.id] = session
        return session

    def get(self, session_id: str, owner: str, job_id: int) -> Session:
        """The session of this person and job."""
        found = self._sessions.get(session_id)
        if found is None or found.owner != owner or found.job_id != job_id:
            raise NotFoundError(
                f"Session {session_id} is not found.", hint="it has ended, or is somebody else's"
            )
        return found

    def _forget(self, session_id: str) -> None:
        self._sessions.pop(session_id, None)

    async def close(self) -> None:
        """End all of them."""
        for session in list(self._sessions.values()):
            session.end()
            await session.ended()


def set_size(fd: int, rows: int, columns: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)

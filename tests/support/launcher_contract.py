"""The launcher contract as tests: subclassed once per launcher, for the real ones and the fake alike."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from openpaisdk.errors import ConflictError
from openpaisdk.launchers import ExecPlan, Launcher, LaunchError, Observation, TaskSpec

T = TypeVar("T")
PATIENCE = 30.0


class Server:
    """What a server does with a launcher: remembers exits and events, waits for them."""

    def __init__(self, launcher: Launcher) -> None:
        self.launcher = launcher
        self.exits: list[str] = []
        self.events: list[tuple[str, str, str, str]] = []
        self._changed = asyncio.Event()
        launcher.subscribe(self._exit, lambda *event: self.events.append(event))

    def _exit(self, handle: str) -> None:
        self.exits.append(handle)
        self._changed.set()

    async def ended(self, *handles: str) -> list[Observation]:
        """Waits until on_exit named all of them."""
        while not set(handles) <= set(self.exits):
            self._changed.clear()
            await asyncio.wait_for(self._changed.wait(), PATIENCE)
        return [self.launcher.observe([handle])[handle] for handle in handles]

    async def printed(self, handle: str, text: str, stream: Any = "stdout") -> None:
        """Waits until the log holds `text`."""
        for _ in range(int(PATIENCE / 0.02)):
            if text.encode() in self.launcher.logs(handle, stream, 0):
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"{text!r} was never printed: {self.launcher.logs(handle, stream, 0)!r}")

    def reasons(self) -> list[str]:
        return [event[2] for event in self.events]


class LauncherContract:
    """Subclasses say how a launcher is made; calling `make` again is a server restart on the same machine."""

    def make(self) -> Launcher:
        raise NotImplementedError

    def task(self, folder: Path, script: str, **more: Any) -> TaskSpec:
        more.setdefault("memory_mb", 256)
        return TaskSpec(key=folder.name, folder=str(folder), script=script, **more)

    def run(self, story: Callable[[Server], Awaitable[T]]) -> T:
        """Runs a story on a fresh server and closes it, as a server that stops does."""

        async def told() -> T:
            server = Server(self.make())
            try:
                return await story(server)
            finally:
                await server.launcher.close()

        return asyncio.run(told())

    def launch(self, *specs: TaskSpec) -> list[str]:
        """Launched by a server that is gone afterwards."""
        return self.run(lambda server: server.launcher.launch(specs))

    def cleared(self, *handles: str) -> None:
        """Ends and forgets what a test left running."""

        async def story(server: Server) -> None:
            await server.launcher.kill(handles, grace=0)
            await server.launcher.forget(handles)

        self.run(story)

    def test_it_is_a_launcher_with_a_name(self) -> None:
        launcher = self.make()
        assert isinstance(launcher, Launcher)
        assert launcher.name
        capacity = launcher.capacity()
        assert capacity is None or all(node.cpu >= 1 and node.memory_mb >= 1 for node in capacity.nodes)

    def test_a_task_runs_and_its_streams_are_apart(self, tmp_path: Path) -> None:
        async def story(server: Server) -> None:
            script = "echo to out\necho to err >&2\nexit 0"
            [handle] = await server.launcher.launch([self.task(tmp_path / "task-0", script)])
            [seen] = await server.ended(handle)
            assert seen.state == "ended"
            assert seen.exit and (seen.exit.code, seen.exit.signal, seen.exit.oom) == (0, None, False)
            assert seen.started_at is not None and 0 < seen.started_at <= seen.exit.at
            assert server.launcher.logs(handle, "stdout", 0) == b"to out\n"
            assert server.launcher.logs(handle, "stderr", 0) == b"to err\n"
            await server.launcher.forget([handle])

        self.run(story)

    @pytest.mark.parametrize(("script", "code", "signal"), [("exit 3", 3, None), ("kill -9 $$", 137, 9)])
    def test_the_code_is_the_shells(self, tmp_path: Path, script: str, code: int, signal: int | None) -> None:
        async def story(server: Server) -> None:
            [handle] = await server.launcher.launch([self.task(tmp_path / "task-0", script)])
            [seen] = await server.ended(handle)
            assert seen.exit and (seen.exit.code, seen.exit.signal) == (code, signal)
            await server.launcher.forget([handle])

        self.run(story)

    def test_variables_arrive_as_they_are(self, tmp_path: Path) -> None:
        value = 'it\'s "two"\n$lines `and` \\ more ü'

        async def story(server: Server) -> None:
            spec = self.task(tmp_path / "task-0", 'echo "$VALUE"', env={"VALUE": value})
            [handle] = await server.launcher.launch([spec])
            await server.ended(handle)
            assert server.launcher.logs(handle, "stdout", 0).decode() == value + "\n"
            await server.launcher.forget([handle])

        self.run(story)

    def test_logs_start_anywhere(self, tmp_path: Path) -> None:
        async def story(server: Server) -> None:
            [handle] = await server.launcher.launch([self.task(tmp_path / "task-0", "echo 0123456789")])
            await server.ended(handle)
            assert server.launcher.logs(handle, "stdout", 3, limit=4) == b"3456"
            assert server.launcher.logs(handle, "stdout", 99) == b""
            path = server.launcher.log_path(handle, "stdout")
            assert path is None or path.read_bytes() == b"0123456789\n"
            await server.launcher.forget([handle])
            assert server.launcher.logs(handle, "stdout", 0) == b""
            assert server.launcher.log_path(handle, "stdout") is None

        self.run(story)

    def test_a_gang_is_started_and_observed_together(self, tmp_path: Path) -> None:
        async def story(server: Server) -> None:
            gang = [self.task(tmp_path / f"task-{n}", f"echo {n}\nsleep 600") for n in range(3)]
            handles = await server.launcher.launch(gang)
            for number, handle in enumerate(handles):
                await server.printed(handle, f"{number}\n")
            assert {seen.state for seen in server.launcher.observe(handles).values()} == {"running"}
            await server.launcher.kill(handles, grace=5)
            assert {seen.state for seen in server.launcher.observe(handles).values()} == {"ended"}
            assert sorted(server.exits) == sorted(handles)
            await server.launcher.forget(handles)

        self.run(story)

    def test_launching_twice_starts_once(self, tmp_path: Path) -> None:
        spec = self.task(tmp_path / "task-0", "echo ran\nsleep 600")

        async def story(server: Server) -> None:
            both = await asyncio.gather(server.launcher.launch([spec]), server.launcher.launch([spec]))
            assert both[0] == both[1] == await server.launcher.launch([spec])
            [handle] = both[0]
            await server.printed(handle, "ran\n")
            await server.launcher.kill([handle], grace=5)
            assert await server.launcher.launch([spec]) == [handle]
            await server.ended(handle)
            assert server.launcher.logs(handle, "stdout", 0) == b"ran\n"
            await server.launcher.forget([handle])

        self.run(story)

    def test_the_next_server_starts_nothing_twice(self, tmp_path: Path) -> None:
        spec = self.task(tmp_path / "task-0", "echo ran\nexit 4")
        [handle] = self.launch(spec)

        async def story(server: Server) -> None:
            assert await server.launcher.launch([spec]) == [handle]
            [seen] = await server.ended(handle)
            assert seen.exit and seen.exit.code == 4
            assert server.launcher.logs(handle, "stdout", 0) == b"ran\n"
            assert server.exits == [handle]
            await server.launcher.forget([handle])

        self.run(story)

    def test_a_task_outlives_its_server(self, tmp_path: Path) -> None:
        [handle] = self.launch(self.task(tmp_path / "task-0", "echo on\nsleep 600"))

        async def story(server: Server) -> None:
            await server.printed(handle, "on\n")
            assert server.launcher.observe([handle])[handle].state == "running"
            await server.launcher.kill([handle], grace=5)
            [seen] = await server.ended(handle)
            assert seen.exit and seen.exit.code == 143
            await server.launcher.forget([handle])

        self.run(story)

    def test_an_end_without_a_server_is_learnt_by_the_next(self, tmp_path: Path) -> None:
        [handle] = self.launch(self.task(tmp_path / "task-0", "echo bye\nexit 9"))

        async def story(server: Server) -> None:
            await server.printed(handle, "bye\n")
            seen = server.launcher.observe([handle])[handle]
            if seen.state == "running":
                [seen] = await server.ended(handle)
            assert seen.exit and seen.exit.code == 9
            await server.launcher.forget([handle])

        self.run(story)

    def test_kill_takes_those_who_ignore_the_request(self, tmp_path: Path) -> None:
        async def story(server: Server) -> None:
            script = "trap '' TERM\necho deaf\nsleep 600"
            [handle] = await server.launcher.launch([self.task(tmp_path / "task-0", script)])
            await server.printed(handle, "deaf\n")
            await server.launcher.kill([handle], grace=0.2)
            [seen] = await server.ended(handle)
            assert seen.exit and (seen.exit.code, seen.exit.signal) == (137, 9)
            await server.launcher.forget([handle])

        self.run(story)

    def test_kill_may_come_at_once_and_again(self, tmp_path: Path) -> None:
        async def story(server: Server) -> None:
            [handle] = await server.launcher.launch([self.task(tmp_path / "task-0", "sleep 600")])
            await asyncio.gather(*(server.launcher.kill([handle], grace=5) for _ in range(3)))
            [seen] = await server.ended(handle)
            assert seen.exit and seen.exit.code in (137, 143)
            await server.launcher.kill([handle, f"{server.launcher.name}:/nowhere", "odd"], grace=0)
            assert server.exits == [handle]
            await server.launcher.forget([handle])

        self.run(story)

    def test_what_never_started_is_lost(self, tmp_path: Path) -> None:
        async def story(server: Server) -> None:
            handles = [f"{server.launcher.name}:{tmp_path}/never", "odd", ""]
            assert set(server.launcher.observe(handles)) == set(handles)
            assert {seen.state for seen in server.launcher.observe(handles).values()} == {"lost"}
            await server.launcher.forget(handles)

        self.run(story)

    def test_all_of_a_gang_or_none(self, tmp_path: Path) -> None:
        [other] = self.launch(self.task(tmp_path / "taken", "sleep 600"))

        async def story(server: Server) -> None:
            wrong = TaskSpec(key="somebody-else", folder=str(tmp_path / "taken"), script="echo stolen")
            gang = [self.task(tmp_path / "task-0", "echo started\nsleep 600"), wrong]
            with pytest.raises(LaunchError) as caught:
                await server.launcher.launch(gang)
            assert caught.value.key == "somebody-else"
            assert (
                not (tmp_path / "task-0" / "stdout").exists() or not (tmp_path / "task-0/stdout").read_text()
            )
            assert server.launcher.observe([other])[other].state == "running"

        self.run(story)
        self.cleared(other)

    def test_only_a_running_task_can_be_entered(self, tmp_path: Path) -> None:
        async def story(server: Server) -> None:
            spec = self.task(tmp_path / "task-0", "echo up\nsleep 600", env={"SECRET": "hunter2"})
            [handle] = await server.launcher.launch([spec])
            await server.printed(handle, "up\n")
            plan = server.launcher.exec_command(handle, ["env"], tty=False)
            assert isinstance(plan, ExecPlan) and "hunter2" not in " ".join(plan.argv)
            await server.launcher.kill([handle], grace=5)
            with pytest.raises(ConflictError):
                server.launcher.exec_command(handle, ["env"])
            await server.launcher.forget([handle])

        self.run(story)

    def test_forgetting_leaves_no_file(self, tmp_path: Path) -> None:
        async def story(server: Server) -> None:
            [handle] = await server.launcher.launch([self.task(tmp_path / "task-0", "echo x")])
            await server.ended(handle)
            await server.launcher.forget([handle])
            assert not (tmp_path / "task-0").exists()
            await server.launcher.forget([handle, "unknown"])
            assert server.launcher.observe([handle])[handle].state == "lost"

        self.run(story)

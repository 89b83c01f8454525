"""The loop across kills and failures: nothing accepted is lost, nothing starts twice, exits are learnt."""

from __future__ import annotations

import asyncio
import sqlite3

import pytest

from openpaisdk.errors import UnavailableError


def test_a_killed_server_adopts_what_runs(server, spec):
    server.submit(spec(command="sleep 9"))
    server.running()
    server.restart()
    assert server.row().state == "RUNNING"
    server.end(0)
    assert server.finished().state == "SUCCEEDED"
    assert len(server.world.starts) == 1


def test_exits_are_learnt_by_the_next_server(server, spec):
    server.submit(spec("bad", "echo why >&2\nsleep 9"))
    server.submit(spec("good", "sleep 9"))
    for name in ("bad", "good"):
        server.running(name)
    handles = {name: server.handle(name) for name in ("bad", "good")}
    server.run(server._vanish())
    server.world.end(handles["bad"], 3)
    server.world.end(handles["good"], 0)
    server._start()
    assert server.finished("good").state == "SUCCEEDED"
    assert server.finished("bad").exit_code == 255
    runtime = server.detail("bad")["jobStatus"]["appExitMessages"]["runtime"]
    assert runtime["originUserExitCode"] == 3 and runtime["errorLogs"]["user"] == "why"


def test_a_machine_restart_retries_for_free(server, spec):
    server.submit(spec(command="sleep 9"))
    server.running()
    handle = server.handle()
    server.run(server._vanish())
    server.world.lose(handle)
    server._start()
    row = server.wait(lambda row: row.attempt == 1 and row.state == "RUNNING")
    assert (row.retries, row.user_retries) == (1, 0)
    server.end(0, number=1)
    assert server.finished().state == "SUCCEEDED"


def test_an_accepted_job_is_not_lost_before_its_first_turn(server, spec):
    async def submit_and_die() -> None:
        await server.services.loop.submit("ann", spec())
        await server._vanish()

    server.run(submit_and_die())
    server._start()
    assert server.finished().state == "SUCCEEDED"


def test_an_intent_without_a_handle_is_launched_once(server, spec, monkeypatch):
    launched = asyncio.Event()
    real = type(server.services.launcher).launch

    async def launch_and_hang(self, gang):
        handles = await real(self, gang)
        launched.set()
        await asyncio.sleep(60)
        return handles

    monkeypatch.setattr(type(server.services.launcher), "launch", launch_and_hang)
    server.submit(spec(command="sleep 9"))
    server.run(launched.wait())
    assert server.row().sub_state == "AttemptCreationRequested"
    monkeypatch.setattr(type(server.services.launcher), "launch", real)
    server.restart()
    server.running()
    assert len(server.world.starts) == 1
    server.end(0)
    server.finished()


def test_a_stop_while_a_gang_comes_up_is_heeded(server, spec, monkeypatch):
    asked = asyncio.Event()

    async def hang(self, gang):
        asked.set()
        await asyncio.sleep(60)

    monkeypatch.setattr(type(server.services.launcher), "launch", hang)
    server.submit(spec(command="sleep 9"))
    server.run(asked.wait())
    server.client.put("/api/v2/jobs/ann~job/executionType", {"value": "STOP"})
    assert server.finished().state == "STOPPED"
    assert server.world.starts == []


def test_a_stop_is_heeded_by_the_next_server(server, spec):
    server.submit(spec(command="sleep 9"))
    server.running()
    job = server.row()

    async def stop_and_die() -> None:
        await server.services.loop.stop(job)
        await server._vanish()

    server.run(stop_and_die())
    server._start()
    assert server.finished().state == "STOPPED"


def test_what_cannot_be_launched_fails_with_the_reason(server, spec):
    server.world.refuse = "no such shell"
    server.submit(spec())
    row = server.finished()
    assert (row.state, row.exit_code) == ("FAILED", -310)
    status = server.detail()["jobStatus"]
    assert "no such shell" in status["appExitMessages"]["launcher"]
    assert "no such shell" in server.client.get("/api/v2/jobs/ann~job/why").json()["text"]


def test_a_gang_is_launched_whole_and_finds_its_peers(server, spec):
    role = spec()["taskRoles"]["worker"]
    roles = {"Ps_1": {**role, "instances": 2}, "worker": {**role, "instances": 2, "commands": ["sleep 9"]}}
    roles["Ps_1"]["commands"] = ["sleep 9"]
    server.submit(spec(roles=roles))
    server.running()
    envs = [task.spec.env for task in server.world.tasks.values()]
    assert len(envs) == 4
    for env in envs:
        assert env["PAI_TASK_ROLE_INSTANCES"] == "ps1:0,ps1:1,worker:0,worker:1"
        for peer in ("ps1_0", "ps1_1", "worker_0", "worker_1"):
            assert env[f"PAI_HOST_IP_{peer}"] == "127.0.0.1"
            assert env[f"PAI_PORT_LIST_{peer}_http"].isdigit()
    assert len({env["PAI_CONTAINER_HOST_PORT"] for env in envs}) == 4
    assert server.detail()["taskRoles"].keys() == {"ps1", "worker"}


class FullDisk:
    """A store whose connection refuses writes until told otherwise."""

    def __init__(self, server) -> None:
        self._db = server.services.db
        self._real = self._db._commit

    def __enter__(self):
        def refuse(fns):
            error = sqlite3.OperationalError("database or disk is full")
            from openpaisdk.server.database import unwritable

            return [(None, unwritable(error))] * len(fns)

        self._db._commit = refuse

    def __exit__(self, *_):
        self._db._commit = self._real


def test_with_a_full_disk_reads_go_on_and_writes_are_refused(server, spec):
    server.submit(spec(command="sleep 9"))
    server.running()
    with FullDisk(server):
        reply = server.submit(spec("other"))
        assert reply.status == 503 and "disk is full" in reply.json()["message"]
        assert server.client.get("/api/v2/jobs").status == 200
        server.end(0)
        server.run(asyncio.sleep(0.05))
        assert server.row().state == "RUNNING"
    assert server.finished().state == "SUCCEEDED"
    assert server.submit(spec("other")).status == 202
    server.finished("other")


def test_an_event_the_scheduler_refuses_costs_only_itself(server, spec, monkeypatch, caplog):
    scheduler = server.services.loop._scheduler
    real = scheduler._take

    def take(event):
        if getattr(getattr(event, "job", None), "name", "") == "ann~odd":
            raise RuntimeError("no such move")
        return real(event)

    monkeypatch.setattr(scheduler, "_take", take)

    async def both() -> None:
        await asyncio.gather(
            server.services.loop.submit("ann", spec("odd")), server.services.loop.submit("ann", spec("even"))
        )

    server.run(both())
    assert server.finished("even").state == "SUCCEEDED"
    assert "no such move" in caplog.text


def test_group_commit_keeps_a_burst(server, spec):
    async def burst() -> list[object]:
        return await asyncio.gather(
            *(server.services.loop.submit("ann", spec(f"b{number}")) for number in range(300))
        )

    assert len(server.run(burst())) == 300
    assert server.client.get("/api/v2/jobs?limit=0&withTotalCount=true").json()["totalCount"] == 300


def test_closing_leaves_tasks_alone(server, spec):
    server.submit(spec(command="sleep 9"))
    server.running()
    server.run(server.services.close())
    assert all(task.exit is None for task in server.world.tasks.values())
    server._start()
    server.end(0)
    assert server.finished().state == "SUCCEEDED"


def test_a_write_that_fails_is_told_to_its_own_caller(server):
    db = server.services.db

    def bad(connection):
        connection.execute("INSERT INTO job_counts VALUES ('x', 'x', 'x', 'x', 1)")
        raise KeyError("mine")

    async def together():
        return await asyncio.gather(
            db.write(bad),
            db.write(lambda connection: connection.execute("SELECT 1").fetchone()[0]),
            return_exceptions=True,
        )

    failed, fine = server.run(together())
    assert isinstance(failed, KeyError) and fine == 1
    assert db.read.execute("SELECT count(*) FROM job_counts").fetchone()[0] == 0


def test_a_store_that_is_full_says_so_and_recovers(server):
    db = server.services.db
    pages = db._writer.execute("PRAGMA page_count").fetchone()[0]
    db._writer.execute(f"PRAGMA max_page_count = {pages}")

    def big(connection):
        connection.execute("CREATE TABLE IF NOT EXISTS big (x)")
        connection.execute("INSERT INTO big VALUES (randomblob(1000000))")

    with pytest.raises(UnavailableError, match="full"):
        server.run(db.write(big))
    db._writer.execute("PRAGMA max_page_count = 1073741823")
    server.run(db.write(big))

"""What tasks find and leave: variables, exit codes with their evidence, code in place, commands inside."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path

import pytest

from openpaisdk.errors import ConfigError, UsageError
from openpaisdk.launchers import Exit
from openpaisdk.protocol import allot_port
from openpaisdk.server import environment, exits
from openpaisdk.server.environment import Identity, Peer
from openpaisdk.server.exec import Session
from openpaisdk.server.settings import Settings, parse


def test_job_variables(spec):
    role = spec()["taskRoles"]["worker"]
    found = environment.job_variables(
        spec(
            roles={
                "worker": {**role, "instances": 2, "extraContainerOptions": {"shmMB": 64}},
                "Ps": {**role, "completion": {"minFailedInstances": -1, "minSucceededInstances": None}},
            }
        ),
        user="ann",
        job="job",
        vc="default",
    )
    assert found["PAI_JOB_NAME"] == found["PAI_FRAMEWORK_NAME"] == "ann~job"
    assert found["PAI_TASK_ROLE_LIST"] == "worker,Ps"
    assert found["PAI_TASKS_NUM"] == found["PAI_JOB_TASK_COUNT"] == "3"
    assert found["PAI_RESOURCE_worker"] == "0,1,64,64" and found["PAI_RESOURCE_Ps"] == "0,1,64,0"
    assert (found["PAI_MIN_FAILED_TASK_COUNT_Ps"], found["PAI_MIN_SUCCEEDED_TASK_COUNT_Ps"]) == ("-1", "1")
    assert found["PAI_TASK_ROLE_TASK_COUNT_worker"] == "2"


def test_peers_without_a_place_are_left_out():
    uid = "aaaaaaaa-0000-0000-0000-000000000000"
    ports = {"tb": [allot_port(uid, "tb", 0), allot_port(uid, "tb", 1)], "ssh": [23660], "http": [39896]}
    found = environment.peer_variables([Peer("workera", 0, "10.0.0.5", ports), Peer("workera", 1, "", {})])
    assert found == {
        "PAI_HOST_IP_workera_0": "10.0.0.5",
        "PAI_PORT_LIST_workera_0_tb": "30423,31819",
        "PAI_workera_0_tb_PORT": "30423,31819",
        "PAI_PORT_LIST_workera_0_ssh": "23660",
        "PAI_workera_0_ssh_PORT": "23660",
        "PAI_PORT_LIST_workera_0_http": "39896",
        "PAI_workera_0_http_PORT": "39896",
        "PAI_TASK_ROLE_workera_HOST_LIST": "10.0.0.5:39896",
        "PAI_TASK_ROLE_INSTANCES": "workera:0,workera:1",
    }


def test_own_variables():
    who = Identity("ann", "job", "d" * 32, "u1", 1, "u2", "Worker_A", 0, 2, "u3", "u4")
    own = Peer("workera", 0, "10.0.0.5", {"tb": [30423, 31819], "ssh": [23660], "http": [39896]})
    found = environment.task_variables(who, own=own, gpus=(0, 3), workdir="/w")
    assert found["PAI_CURRENT_TASK_ROLE_NAME"] == "Worker_A" and found["FC_TASKROLE_NAME"] == "workera"
    assert found["PAI_CONTAINER_HOST_PORT_LIST"] == "tb:30423,31819;ssh:23660;http:39896;"
    assert found["PAI_CONTAINER_HOST_tb_PORT_LIST"] == "30423,31819"
    assert (found["PAI_CURRENT_CONTAINER_PORT"], found["PAI_CONTAINER_SSH_PORT"]) == ("39896", "23660")
    assert found["CUDA_VISIBLE_DEVICES"] == found["NVIDIA_VISIBLE_DEVICES"] == "0,3"
    assert found["FC_TASK_ATTEMPT_INSTANCE_UID"] == "2_u4"
    none = environment.task_variables(who, own=own, gpus=(), workdir="/w")
    assert (none["CUDA_VISIBLE_DEVICES"], none["NVIDIA_VISIBLE_DEVICES"]) == ("", "none")


def logs(tmp_path: Path, **texts: str) -> dict[str, Path | None]:
    found: dict[str, Path | None] = {}
    for name, text in texts.items():
        path = tmp_path / name
        path.write_text(text)
        found[name.replace("_", ".")] = path
    return found


def test_exit_codes_with_their_evidence(tmp_path):
    assert exits.judge(Exit(0), {}) == (0, {})
    verdict = exits.judge(Exit(127), logs(tmp_path, stderr="x: line 1: nope: command not found\n"))
    assert verdict.code == 220
    assert "command not found" in verdict.outcome["runtime"]["matchedUserLogString"]
    verdict = exits.judge(Exit(143, signal=15), {})
    assert verdict.code == 143 and "signal: 15" in verdict.outcome["diagnostics"]
    verdict = exits.judge(Exit(137, signal=9, oom=True), {"stdout": None, "stderr": None})
    assert verdict.code == -1200 and verdict.outcome["runtime"]["originUserExitCode"] == 137


def test_what_is_kept_of_the_logs_is_bounded(tmp_path):
    verdict = exits.judge(
        Exit(9),
        logs(tmp_path, stdout="o\n", stderr="é" * 9000 + "\n" + "line\n" * 40, runtime_log="p" * 9000),
    )
    kept = verdict.outcome["runtime"]["errorLogs"]
    assert len((kept["user"] + kept["platform"]).encode()) <= 4096
    assert kept["user"].splitlines() == ["line"] * 15


def run_session(
    argv: list[str], *, size: tuple[int, int] | None = None, feed: bytes = b"", eof: bool = False
):
    async def act():
        gone: list[str] = []
        session = Session("ann", 1, gone.append)
        await session.start(argv, {"PATH": "/usr/bin:/bin", "TERM": "xterm"}, None, size=size)
        if feed or eof:
            await session.feed(feed, eof=eof)
        found: dict[str, bytes] = {}
        async for name, data in session.frames():
            found[name] = found.get(name, b"") + data
        await session.ended()
        assert gone == [session.id]
        return found

    return asyncio.run(asyncio.wait_for(act(), 20))


def test_a_command_with_pipes():
    assert run_session(["sh", "-c", "cat; echo bad >&2; exit 7"], feed=b"hello", eof=True) == {
        "out": b"hello",
        "err": b"bad\n",
        "exit": b"7",
    }


def test_a_command_killed_by_a_signal():
    assert run_session(["sh", "-c", "kill -9 $$"])["exit"] == b"137"


def test_a_command_on_a_terminal():
    found = run_session(
        ["sh", "-c", "tty && stty size && read x && echo got $x"], size=(33, 111), feed=b"word\n"
    )
    assert b"/dev/pts/" in found["out"] and b"33 111" in found["out"] and b"got word" in found["out"]
    assert found["exit"] == b"0"


def test_leaving_ends_the_command():
    async def act():
        session = Session("ann", 1, lambda _: None)
        await session.start(["sleep", "60"], {"PATH": "/usr/bin:/bin"}, None, size=None)
        frames = session.frames()
        waiting = asyncio.ensure_future(frames.__anext__())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await frames.aclose()
        await session.ended()
        assert session._process.returncode == -9

    asyncio.run(asyncio.wait_for(act(), 20))


def test_exec_over_rest(server, spec):
    server.submit(spec(command="sleep 9"))
    server.running()
    exec_path = "/api/v2/jobs/ann~job/exec"
    assert server.client.post(exec_path, {"command": ["true"], "task": "worker/7"}).status == 404
    reply = server.client.post(exec_path, {"command": ["cat"]})
    assert reply.json()["task"] == "worker/0"
    session = reply.json()["id"]
    assert server.client.post(f"{exec_path}/{session}/input?eof=1", body=b"hi").json() == {"bytes": 2}
    assert server.client.post(f"{exec_path}/{session}/resize", {"rows": 1, "cols": 1}).status == 409
    assert server.client.get(f"{exec_path}/nothing/output").status == 404

    async def read():
        found = [frame async for frame in server.services.exec.get(session, "ann", server.row().id).frames()]
        return dict(found)

    assert server.run(read()) == {"out": b"hi", "exit": b"0"}
    server.end()
    server.finished()
    assert server.client.post(exec_path, {"command": ["true"]}).status == 409


def test_code_is_laid_into_the_working_directory(server, spec):
    from openpaisdk.server.files.blobs import BlobStore

    store = BlobStore(server.services.settings.files, "ann")
    data = b"print(1)\n"
    digest = hashlib.sha256(data).hexdigest()
    incoming = store.receive(digest)
    incoming.write([data])
    incoming.commit()
    text = json.dumps([{"path": "src/a.py", "sha256": digest, "size": len(data), "mode": 0o644}]).encode()
    manifest = hashlib.sha256(text).hexdigest()
    store.add_manifest(manifest, text)
    server.submit(spec(extras={"openpaisdk": {"code": {"manifest": manifest}}}, instances=2))
    assert server.finished().state == "SUCCEEDED"
    for task in server.world.tasks.values():
        assert (Path(task.spec.folder) / "work" / "src" / "a.py").read_bytes() == data
    server.submit(spec("lost", extras={"openpaisdk": {"code": {"manifest": "0" * 64}}}))
    assert server.finished("lost").state == "FAILED"
    assert "not on this server" in server.client.get("/api/v2/jobs/ann~lost/why").json()["text"]


def test_settings():
    found = parse(
        ["--local", "--data-dir", "/tmp/x", "--quota", "*=gpu:2,jobs:3", "--virtual-cluster", "a=0.5"]
    )
    assert (found.port, found.host, found.loopback) == (0, "127.0.0.1", True)
    assert found.quotas == {"*": {"gpu": 2, "jobs": 3}} and found.virtual_clusters == {"a": 0.5}
    for bad in (["--quota", "ann"], ["--quota", "ann=gold:2"], ["--virtual-cluster", "a=7"]):
        with pytest.raises(UsageError):
            parse(["--data-dir", "/tmp/x", *bad])


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::"])
def test_beyond_loopback_only_with_tls(host):
    with pytest.raises(ConfigError, match="TLS"):
        Settings(data_dir=Path("/x"), host=host).require_safe()
    Settings(data_dir=Path("/x"), host=host, insecure=True).require_safe()
    Settings(data_dir=Path("/x"), host=host, tls_cert=Path("c"), tls_key=Path("k")).require_safe()
    with pytest.raises(ConfigError):
        Settings(data_dir=Path("/x"), tls_cert=Path("c")).require_safe()

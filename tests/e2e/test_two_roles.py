"""Two `ps` and two `worker` tasks exchange data over the allotted ports: as processes and in containers."""

from __future__ import annotations

from pathlib import Path

import pytest

from openpaisdk.rest.following import LogLine
from support.servers import ServerProcess

# Python does it in process form, busybox in container form.
PS_PROCESS = """exec python3 -c '
import os, socketserver
port = int(os.environ["PAI_CONTAINER_HOST_data_PORT_LIST"])
index = os.environ["PAI_TASK_INDEX"]
class Answer(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(("ps " + index + " got " + self.rfile.readline().decode()).encode())
socketserver.TCPServer.allow_reuse_address = True
socketserver.TCPServer(("127.0.0.1", port), Answer).serve_forever()
'"""
WORKER_PROCESS = """exec python3 -c '
import os, socket, time
me = os.environ["PAI_TASK_INDEX"]
for i in range(2):
    where = (os.environ[f"PAI_HOST_IP_ps_{i}"], int(os.environ[f"PAI_PORT_LIST_ps_{i}_data"]))
    for _ in range(100):
        try:
            link = socket.create_connection(where, 5)
            break
        except OSError:
            time.sleep(0.1)
    link.sendall(("hello from worker " + me + "\\n").encode())
    print(link.makefile().readline().strip(), flush=True)
'"""
PS_CONTAINER = """mkdir -p www
echo "ps $PAI_TASK_INDEX got a request" > www/index.html
exec busybox httpd -f -p 127.0.0.1:$PAI_CONTAINER_HOST_data_PORT_LIST -h www"""
WORKER_CONTAINER = """for i in 0 1; do
  eval host=\\$PAI_HOST_IP_ps_$i port=\\$PAI_PORT_LIST_ps_${i}_data
  tries=0
  until busybox wget -q -O - http://$host:$port/index.html; do
    tries=$((tries + 1)); [ $tries -lt 100 ] || exit 9; busybox sleep 0.1
  done
done"""


def spec(name: str, image: str, ps: str, worker: str) -> dict[str, object]:
    def role(command: str, **ports: int) -> dict[str, object]:
        resources = {"cpu": 0, "memoryMB": 128, "gpu": 0, **({"ports": ports} if ports else {})}
        return {
            "instances": 2,
            "dockerImage": "image",
            "resourcePerInstance": resources,
            "commands": [command],
        }

    return {
        "protocolVersion": 2,
        "name": name,
        "type": "job",
        "prerequisites": [{"type": "dockerimage", "name": "image", "uri": image}],
        "taskRoles": {"ps": role(ps, data=1), "worker": role(worker)},
    }


def workers_said(server: ServerProcess, name: str) -> list[str]:
    records = [record for record in server.cluster().follow(name) if isinstance(record, LogLine)]
    return sorted(
        record.text for record in records if record.task.startswith("worker/") and record.stream == "stdout"
    )


def test_as_processes(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "server", "--launcher", "process").start()
    try:
        server.cluster().submit(spec("pair", "none", PS_PROCESS, WORKER_PROCESS))
        done = server.cluster().wait("pair", timeout=60)
        assert done["jobStatus"]["state"] == "SUCCEEDED", done["jobStatus"]
        assert workers_said(server, "pair") == sorted(
            f"ps {ps} got hello from worker {worker}" for ps in range(2) for worker in range(2)
        )
        states = {task["taskState"] for task in done["taskRoles"]["ps"]["taskStatuses"]}
        assert states == {"STOPPED"}  # the workers' end ended the job
    finally:
        server.stop()


@pytest.mark.real("podman")
@pytest.mark.timeout(240)
def test_in_containers(tmp_path: Path) -> None:
    from support.images import busybox_image

    image = busybox_image()
    server = ServerProcess(tmp_path / "server", "--launcher", "container").start()
    try:
        server.cluster().submit(spec("pair", image, PS_CONTAINER, WORKER_CONTAINER))
        done = server.cluster().wait("pair", timeout=150)
        assert done["jobStatus"]["state"] == "SUCCEEDED", done["jobStatus"]
        assert workers_said(server, "pair") == sorted(
            f"ps {ps} got a request" for ps in range(2) for _ in range(2)
        )
    finally:
        server.stop()

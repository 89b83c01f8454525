"""A small OpenPAI in memory, in place of the network: `Cluster(config, transport=FakePAI())`."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

ALL_EXTENSIONS = "submit-key,wait,follow,delete,why,exec,files,signal"
NO_USAGE = {"cpu": 0, "memory": 0, "gpu": 0, "vCores": 0, "GPUs": 0}
START = 1_700_000_000_000


class FakePAI:
    """Jobs end at once when they are waited for or followed; `outcomes` says how, by job name."""

    def __init__(self, *, extensions: str = "", user: str = "ann", gpus: int = 4) -> None:
        self.extensions = extensions
        self.user = user
        self.jobs: dict[str, dict[str, Any]] = {}
        self.outcomes: dict[str, int] = {}
        self.logs: dict[str, list[tuple[str, str, str]]] = {}
        self.calls: list[tuple[str, str]] = []
        self.exec_runs: dict[str, dict[str, Any]] = {}
        total = {"cpu": 16, "memory": 65536, "gpu": gpus, "vCores": 16, "GPUs": gpus}
        self.virtual_clusters = {
            "default": {
                "capacity": 100,
                "usedCapacity": 0,
                "maxCapacity": 100,
                "dedicated": False,
                "resourcesUsed": dict(NO_USAGE),
                "resourcesGuaranteed": total,
                "resourcesTotal": total,
            }
        }

    def __call__(
        self, method: str, url: str, headers: dict[str, str], body: bytes | None
    ) -> tuple[int, dict[str, str], bytes]:
        parts = urlsplit(url)
        path = unquote(parts.path).removeprefix("/rest-server").rstrip("/")
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.calls.append((method, path))
        status, answer = self._answer(method, path, query, headers, body)
        found = {"content-type": "application/json"}
        if self.extensions:
            found["openpai-extensions"] = self.extensions
        if isinstance(answer, tuple):
            found["content-type"], answer = answer
            return status, found, answer.encode()
        return status, found, json.dumps(answer).encode()

    def _answer(self, method: str, path: str, query: dict[str, str], headers: Any, body: bytes | None) -> Any:
        if path == "/api/v2/authn/basic/login":
            asked = json.loads(body or b"{}")
            if asked["password"] != "secret":
                return 400, {"code": "IncorrectPasswordError", "message": "Password is incorrect."}
            return 200, {"user": asked["username"], "token": "a-token", "admin": False}
        if path == "/api/v2/info":
            return 200, {"launcherType": "k8s", "version": "1.8.0"}
        if not headers.get("authorization"):
            return 401, {"code": "UnauthorizedUserError", "message": "Your token is invalid."}
        if path == "/api/v2/blobs/missing" and self.extensions:
            return 200, []
        if path == "/api/v2/virtual-clusters":
            return 200, self.virtual_clusters
        if path == "/api/v2/jobs":
            return self._submit(headers, body) if method == "POST" else self._list(query)
        found = re.fullmatch(r"/api/v2/jobs/([^/]+)(/.*)?", path)
        if not found:
            return 404, {"code": "NoApiError", "message": f"no {path}"}
        job = self.jobs.get(found[1])
        if job is None:
            return 404, {"code": "NoJobError", "message": f"Job {found[1]} is not found."}
        return self._of_job(method, job, found[2] or "", query, body)

    def add(
        self, name: str, *, user: str | None = None, state: str = "RUNNING", **more: Any
    ) -> dict[str, Any]:
        """A job that is already there."""
        from openpaisdk.job import Job

        spec = more.pop("spec", None) or Job.from_command("sleep 1", name=name).spec
        return self._keep(user or self.user, spec, state, **more)

    def _keep(self, user: str, spec: dict[str, Any], state: str, **more: Any) -> dict[str, Any]:
        tasks = sum(role.get("instances", 1) for role in spec["taskRoles"].values())
        gpus = sum(
            role.get("instances", 1) * role["resourcePerInstance"]["gpu"]
            for role in spec["taskRoles"].values()
        )
        job = {
            "name": spec["name"],
            "username": user,
            "state": state,
            "spec": spec,
            "exit": None,
            "tasks": tasks,
            "gpus": gpus,
            "executionType": "START",
            "events": [],
            **more,
        }
        self.jobs[f"{user}~{spec['name']}"] = job
        return job

    def _submit(self, headers: Any, body: bytes | None) -> Any:
        import yaml

        spec = yaml.safe_load(body or b"")
        if f"{self.user}~{spec['name']}" in self.jobs:
            return 409, {"code": "ConflictJobError", "message": f"Job {spec['name']} already exists."}
        self._keep(self.user, spec, "WAITING")
        return 202, {"status": 202, "message": "ok"}

    def _list(self, query: dict[str, str]) -> Any:
        rows = [self._row(job) for job in self.jobs.values()]
        for key, field in (("username", "username"), ("state", "state"), ("vc", "virtualCluster")):
            if key in query:
                rows = [row for row in rows if row[field] in query[key].split(",")]
        if "keyword" in query:
            rows = [row for row in rows if query["keyword"] in row["name"]]
        start, count = int(query.get("offset", 0)), int(query.get("limit", 5000))
        page = rows[start : start + count]
        return 200, {"totalCount": len(rows), "data": page} if query.get("withTotalCount") == "true" else page

    def _row(self, job: dict[str, Any]) -> dict[str, Any]:
        status = self._detail(job)["jobStatus"]
        return {
            "debugId": "0",
            "name": job["name"],
            **{key: status[key] for key in ("username", "state", "subState", "executionType", "retries")},
            "tags": [],
            **{
                key: status[key] for key in ("submissionTime", "createdTime", "launchedTime", "completedTime")
            },
            "appExitCode": job["exit"],
            "virtualCluster": "default",
            "totalGpuNumber": job["gpus"],
            "totalTaskNumber": job["tasks"],
            "totalTaskRoleNumber": len(job["spec"]["taskRoles"]),
            "jobPriority": None,
        }

    def _detail(self, job: dict[str, Any]) -> dict[str, Any]:
        ended = job["state"] in ("SUCCEEDED", "FAILED", "STOPPED")
        launched = ended or job["state"] == "RUNNING"
        roles = {
            role: {
                "taskRoleStatus": {"name": role},
                "taskStatuses": [
                    {
                        "taskIndex": index,
                        "taskState": job["state"],
                        "attemptId": 0,
                        "containerIp": "10.0.0.5",
                        "containerNodeName": "node1",
                        "containerPorts": {"ssh": "23660", "http": "39896"},
                        "containerExitCode": job["exit"],
                        "retries": 0,
                    }
                    for index in range(entry.get("instances", 1))
                ],
            }
            for role, entry in job["spec"]["taskRoles"].items()
        }
        return {
            "debugId": "0",
            "name": job["name"],
            "tags": [],
            "jobStatus": {
                "username": job["username"],
                "state": job["state"],
                "subState": "Completed"
                if ended
                else "AttemptRunning"
                if launched
                else "AttemptCreationPending",
                "executionType": job["executionType"],
                "retries": 0,
                "retryDelayTime": None,
                "submissionTime": START,
                "createdTime": START,
                "launchedTime": START + 1000 if launched else None,
                "completedTime": START + 5200 if ended else None,
                **({"attemptId": 0} if launched else {}),
                "appExitCode": job["exit"],
                "appExitSpec": None,
                "appExitMessages": None,
                "appExitTriggerTaskRoleName": "worker" if job["exit"] else None,
                "appExitTriggerTaskIndex": 0 if job["exit"] else None,
                "virtualCluster": "default",
            },
            "taskRoles": roles if launched else {},
        }

    def end(self, job: dict[str, Any]) -> None:
        """Let a job come to its end."""
        if job["state"] in ("SUCCEEDED", "FAILED", "STOPPED"):
            return
        job["exit"] = -210 if job["executionType"] == "STOP" else self.outcomes.get(job["name"], 0)
        job["state"] = {0: "SUCCEEDED", -210: "STOPPED"}.get(job["exit"], "FAILED")

    def _of_job(
        self, method: str, job: dict[str, Any], rest: str, query: dict[str, str], body: bytes | None
    ) -> Any:
        if rest == "":
            if method == "DELETE":
                del self.jobs[f"{job['username']}~{job['name']}"]
                return 200, {"status": 200, "message": "deleted"}
            if not self.extensions and job.get("polled"):
                self.end(job)
            job["polled"] = job["state"] != "WAITING" or "polled" in job
            return 200, self._detail(job)
        if rest == "/config":
            return 200, ("text/yaml; charset=utf-8", json.dumps(job["spec"]))
        if rest == "/executionType":
            job["executionType"] = json.loads(body or b"{}")["value"]
            return 202, {"status": 202, "message": "ok"}
        if rest == "/events":
            return 200, {"totalCount": len(job["events"]), "data": job["events"]}
        if rest == "/why" and self.extensions:
            return 200, {
                "job": job["name"],
                "state": job["state"],
                "text": f"{job['name']} waits: 2 GPUs wanted, 1 free.",
                "hint": "wait, or ask for less",
            }
        if rest == "/wait" and self.extensions:
            self.end(job)
            return 200, self._detail(job)
        if rest == "/follow" and self.extensions:
            return 200, ("text/event-stream", self._follow(job))
        return self._exec(method, job, rest, query, body)

    def _follow(self, job: dict[str, Any]) -> str:
        events: list[tuple[str, dict[str, Any]]] = [
            ("state", {"state": "WAITING", "subState": "AttemptCreationPending"}),
            ("state", {"state": "RUNNING", "subState": "AttemptRunning", "attempt": 0}),
        ]
        offsets: dict[str, int] = {}
        for task, stream, text in self.logs.get(job["name"], ()):
            key = f"0/{task}/0"
            offsets[key + stream] = offsets.get(key + stream, 0) + len(text.encode())
            place = {"task": task, "at": key, "stream": stream, "offset": offsets[key + stream]}
            events.append(("log", {**place, "text": text}))
        self.end(job)
        last = {"state": job["state"], "exitCode": job["exit"]}
        events += [("state", {**last, "subState": "Completed"}), ("end", last)]
        return "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events)

    def _exec(
        self, method: str, job: dict[str, Any], rest: str, query: dict[str, str], body: bytes | None
    ) -> Any:
        from base64 import b64encode

        if rest == "/signal" and self.extensions:
            return 200, {"message": "asked", "tasks": [json.loads(body or b"{}").get("task", "worker/0")]}
        if rest == "/exec" and self.extensions:
            self.exec_runs["run-1"] = json.loads(body or b"{}")
            return 200, {"id": "run-1"}
        if rest == "/exec/run-1/input":
            return 200, {}
        if rest == "/exec/run-1/output":
            words = " ".join(self.exec_runs["run-1"]["command"])
            frames = (("out", words + "\n"), ("err", "oh\n"), ("exit", "3"))
            lines = [f"event: {name}\ndata: {b64encode(text.encode()).decode()}\n\n" for name, text in frames]
            return 200, ("text/event-stream", "".join(lines))
        return 404, {"code": "NoApiError", "message": f"no {rest}"}


def engine_for(pai: FakePAI) -> Any:
    """An engine whose every cluster is this one."""
    from openpaisdk.config import ClusterConfig
    from openpaisdk.core import Cluster
    from openpaisdk.engine import Engine

    config = ClusterConfig("lab", "http://pai.example.org", user=pai.user, token="a-token")
    return Engine(open_cluster=lambda alias: Cluster(config, transport=pai, sleep=lambda seconds: None))

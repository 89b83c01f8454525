"""Jobs through the REST surface: what is accepted, what is shown, and exactly with which keys."""

from __future__ import annotations

import json

LIST_KEYS = [
    "debugId",
    "name",
    "username",
    "state",
    "subState",
    "executionType",
    "tags",
    "retries",
    "retryDetails",
    "retryDelayTime",
    "submissionTime",
    "createdTime",
    "launchedTime",
    "completedTime",
    "appExitCode",
    "virtualCluster",
    "totalGpuNumber",
    "totalTaskNumber",
    "totalTaskRoleNumber",
    "jobPriority",
]
STATUS_KEYS = {
    "username",
    "state",
    "subState",
    "executionType",
    "retries",
    "retryDetails",
    "retryDelayTime",
    "createdTime",
    "launchedTime",
    "completedTime",
    "attemptState",
    "appProgress",
    "appTrackingUrl",
    "appCreatedTime",
    "appLaunchedTime",
    "appCompletedTime",
    "appExitCode",
    "appExitSpec",
    "appExitDiagnostics",
    "appExitMessages",
    "appExitTriggerMessage",
    "appExitTriggerTaskRoleName",
    "appExitTriggerTaskIndex",
    "appExitType",
    "virtualCluster",
    "submissionTime",
}
TASK_KEYS = {
    "taskIndex",
    "taskUid",
    "taskState",
    "containerId",
    "containerIp",
    "containerNodeName",
    "containerPorts",
    "containerGpus",
    "containerLog",
    "containerExitCode",
    "containerExitSpec",
    "containerExitDiagnostics",
    "retries",
    "accountableRetries",
    "createdTime",
    "launchedTime",
    "completedTime",
    "attemptId",
    "attemptState",
    "currentAttemptCreatedTime",
    "currentAttemptLaunchedTime",
    "currentAttemptCompletedTime",
}


def test_a_job_runs_to_its_end(server, spec):
    reply = server.submit(spec(command="echo hi\nexit 0"))
    assert reply.status == 202
    assert reply.json() == {
        "status": 202,
        "message": "Job ann~job is accepted.",
        "user": "ann",
        "name": "job",
    }
    assert "location" not in reply.headers
    row = server.finished()
    assert (row.state, row.exit_code, row.retries) == ("SUCCEEDED", 0, 0)
    assert row.launched and row.completed and row.launched <= row.completed


def test_a_waiting_job_shows_no_attempt(server, spec):
    server.submit(spec("first", "sleep 9", gpu=4))
    server.submit(spec("second", gpu=4))
    detail = server.detail("second")
    status = detail["jobStatus"]
    assert (status["state"], status["subState"], status["attemptState"]) == (
        "WAITING",
        "AttemptCreationPending",
        "WAITING",
    )
    assert set(status) == STATUS_KEYS
    assert detail["taskRoles"] == {}
    assert server.client.get("/api/v2/jobs/ann~second/attempts/7").status == 200
    assert server.client.get("/api/v2/jobs/ann~second/job-attempts/0").json()["attemptIndex"] is None
    server.running("first")
    why = server.client.get("/api/v2/jobs/ann~second/why").json()
    assert why["state"] == "WAITING" and "GPU" in why["text"]
    assert server.client.put("/api/v2/jobs/ann~first/executionType", {"value": "STOP"}).status == 202
    assert server.finished("second").state == "SUCCEEDED"


def test_a_running_job_shows_every_key(server, spec):
    server.submit(spec(command="sleep 9", gpu=2))
    server.running()
    detail = server.detail()
    assert set(detail) == {"debugId", "name", "tags", "jobStatus", "taskRoles"}
    assert set(detail["jobStatus"]) == STATUS_KEYS | {"attemptId", "appId"}
    assert detail["jobStatus"]["appExitCode"] is None and detail["jobStatus"]["appExitSpec"] is None
    [task] = detail["taskRoles"]["worker"]["taskStatuses"]
    assert set(task) == TASK_KEYS
    assert task["containerIp"] == "127.0.0.1"
    assert task["containerGpus"] == "0,1"
    assert set(task["containerPorts"]) == {"ssh", "http"}
    assert task["containerLog"] == (
        "/api/v2/jobs/ann~job/attempts/0/taskRoles/worker/taskIndex/0/attempts/0/logs"
    )


def test_a_failure_shows_what_the_log_says(server, spec):
    server.submit(spec(command="echo boom >&2\nexit 3"))
    row = server.finished()
    assert (row.state, row.exit_code) == ("FAILED", 255)
    status = server.detail()["jobStatus"]
    assert status["appExitSpec"]["phrase"] == "PAIRuntimeUnknownFailed"
    assert status["appExitMessages"]["container"] is None and status["appExitMessages"]["launcher"] is None
    runtime = status["appExitMessages"]["runtime"]
    assert (runtime["exitCode"], runtime["originUserExitCode"]) == (255, 3)
    assert runtime["errorLogs"]["user"] == "boom"
    assert (status["appExitTriggerTaskRoleName"], status["appExitTriggerTaskIndex"]) == ("worker", 0)
    assert status["appExitType"] == "Failed"
    text = server.client.get("/api/v2/jobs/ann~job/why").json()["text"]
    assert "255" in text and "exited with 3" in text


def test_running_out_of_memory_is_never_retried(server, spec):
    server.submit(spec(command="sleep 9", jobRetryCount=5))
    server.running()
    server.end(137, oom=True)
    row = server.finished()
    assert (row.exit_code, row.retries) == (-1200, 0)


def test_retries_are_counted_and_their_history_kept(server, spec):
    server.submit(spec(command="exit 3", jobRetryCount=2))
    row = server.finished()
    assert (row.state, row.retries, row.user_retries, row.attempt) == ("FAILED", 2, 2, 2)
    attempts = server.client.get("/api/v2/jobs/ann~job/job-attempts").json()
    assert [(one["attemptIndex"], one["isLatest"]) for one in attempts] == [(2, True), (0, False), (1, False)]
    first = server.client.get("/api/v2/jobs/ann~job/attempts/0").json()
    assert first["jobStatus"]["attemptId"] == 0 and first["jobStatus"]["attemptState"] == "FAILED"
    assert server.client.get("/api/v2/jobs/ann~job/attempts/3").code == "NoJobError"
    assert server.client.get("/api/v2/jobs/ann~job/job-attempts/1").json()["isLatest"] is False
    assert len(server.world.starts) == len(set(server.world.starts)) == 3


def test_unknown_jobs(server):
    assert server.client.get("/api/v2/jobs/ann~none").code == "NoJobError"
    assert server.client.get("/api/v2/jobs/ann~none/config").code == "NoJobError"
    missing = server.client.get("/api/v2/jobs/ann~none/job-attempts")
    assert (missing.status, missing.text) == (404, "null")
    healthz = server.client.get("/api/v2/jobs/undefined~undefined/job-attempts/healthz")
    assert (healthz.status, healthz.text) == (200, "ok")


def test_what_is_not_a_job_is_refused(server, spec):
    reply = server.client.post("/api/v2/jobs", body=b"{name: [", headers={"content-type": "text/yaml"})
    assert (reply.status, reply.code) == (400, "InvalidProtocolError")
    reply = server.submit({**spec(), "name": "no spaces please"})
    assert (reply.status, reply.code) == (400, "InvalidProtocolError")
    problems = json.loads(reply.json()["message"])
    assert problems[0]["keyword"] == "pattern" and problems[0]["dataPath"] == ".name"
    reply = server.client.post("/api/v2/jobs", data=spec())
    assert (reply.status, reply.code) == (400, "InvalidProtocolError")
    reply = server.submit(spec(prerequisites=[{"type": "dockerimage", "name": "other", "uri": "x"}]))
    assert reply.status == 400 and not reply.json()["message"].startswith("[")
    reply = server.submit(spec(defaults={"virtualCluster": "nowhere"}))
    assert (reply.status, reply.code) == (403, "ForbiddenUserError")
    reply = server.submit(spec(extras={"storages": [{"name": "nfs"}]}))
    assert (reply.status, reply.code) == (404, "NoStorageError")
    reply = server.submit(spec(gpu=9))
    assert reply.status == 403 and "GPU" in reply.json()["message"]


def test_names_are_used_once(server, spec):
    assert server.submit(spec()).status == 202
    reply = server.submit(spec())
    assert (reply.status, reply.code) == (409, "ConflictJobError")


def test_a_submit_key_gives_the_same_job_again(server, spec):
    first = server.submit(spec(), key="k1")
    assert server.submit(spec(), key="k1").json() == first.json()
    assert server.submit(spec(), key="k2").status == 409
    assert server.submit(spec("other"), key="k1").json() == first.json()
    assert server.submit(spec(), token=server.bob, key="k1").json()["user"] == "bob"


def test_instances_default_to_one(server, spec):
    text = spec()
    del text["taskRoles"]["worker"]["instances"]
    assert server.submit(text).status == 202
    assert server.row().tasks == 1


def test_secrets_are_masked_whatever_the_form(server, spec):
    server.submit(spec(secrets={"password": "hunter2"}, command="echo <% $secrets.password %>"))
    reply = server.client.get("/api/v2/jobs/ann~job/config")
    assert reply.headers["content-type"].startswith("text/yaml")
    assert "hunter2" not in reply.text and reply.json()["secrets"] == "******"
    server.finished()
    assert b"hunter2" in server.services.launcher.logs(server.handle(), "stdout", 0)


def test_stop_and_start_are_always_accepted(server, spec):
    server.submit(spec(command="sleep 9"))
    server.running()
    for value in ("STOP", "START", "STOP"):
        reply = server.client.put("/api/v2/jobs/ann~job/executionType", {"value": value})
        assert (reply.status, reply.json()["status"]) == (202, 202)
    row = server.finished()
    assert (row.state, row.exit_code, row.execution_type) == ("STOPPED", -210, "STOP")
    [task] = server.detail()["taskRoles"]["worker"]["taskStatuses"]
    assert (task["taskState"], task["containerExitCode"]) == ("STOPPED", -220)
    assert server.client.put("/api/v2/jobs/ann~job/executionType", {"value": "STOP"}).status == 202
    assert server.client.put("/api/v2/jobs/ann~job/executionType", {"value": "stop"}).status == 400


def test_only_owner_and_admin_change_a_job(server, spec):
    server.submit(spec(command="sleep 9"))
    server.running()
    bob = server.client.acting_as(server.bob)
    assert bob.get("/api/v2/jobs/ann~job").status == 200
    for reply in (
        bob.put("/api/v2/jobs/ann~job/executionType", {"value": "STOP"}),
        bob.put("/api/v2/jobs/ann~job/tag", {"value": "x"}),
        bob.post("/api/v2/jobs/ann~job/exec", {"command": ["true"]}),
        bob.delete("/api/v2/jobs/ann~job"),
    ):
        assert (reply.status, reply.code) == (403, "ForbiddenUserError")
    assert bob.get("/api/v2/server").status == 403


def test_own_jobs_only_hides_the_others(make_server, spec):
    server = make_server(own_jobs_only=True)
    server.submit(spec())
    server.submit(spec("hers"), token=server.bob)
    bob = server.client.acting_as(server.bob)
    assert [row["name"] for row in bob.get("/api/v2/jobs").json()] == ["hers"]
    assert bob.get("/api/v2/jobs?username=ann").json() == []
    assert bob.get("/api/v2/jobs?withTotalCount=true&limit=0").json() == {"totalCount": 1, "data": []}
    assert bob.get("/api/v2/jobs/ann~job").code == "NoJobError"
    assert len(server.client.get("/api/v2/jobs").json()) == 2


def test_tags(server, spec):
    server.submit(spec())
    tag = "/api/v2/jobs/ann~job/tag"
    assert server.client.put(tag, {"value": "a"}).json()["status"] == 200
    assert server.client.put(tag, {"value": "a"}).status == 200
    assert server.client.put(tag, {"value": "a,b"}).status == 400
    assert server.detail()["tags"] == ["a"]
    assert [row["name"] for row in server.client.get("/api/v2/jobs?tagsContain=a,z").json()] == ["job"]
    assert server.client.get("/api/v2/jobs?tagsNotContain=a").json() == []
    assert server.client.delete(tag, {"value": "a"}).status == 200
    assert server.client.delete(tag, {"value": "a"}).code == "NoTagError"


def test_the_list_has_exactly_its_keys(server, spec):
    server.submit(spec())
    server.finished()
    reply = server.client.get("/api/v2/jobs?withTotalCount=true&limit=20&offset=0&order=jobName,ASC").json()
    assert reply["totalCount"] == 1
    assert list(reply["data"][0]) == LIST_KEYS
    assert reply["data"][0]["jobPriority"] is None
    assert isinstance(server.client.get("/api/v2/jobs").json(), list)
    for bad in ("limit=50001", "limit=x", "offset=-1"):
        assert server.client.get(f"/api/v2/jobs?{bad}").code == "InvalidParametersError"


def test_ssh_is_never_told_and_events_are(server, spec):
    server.submit(spec())
    server.finished()
    assert server.client.get("/api/v2/jobs/ann~job/ssh").code == "NoJobSshInfoError"
    events = server.client.get("/api/v2/jobs/ann~job/events").json()
    assert events["totalCount"] == len(events["data"]) > 0
    assert events["data"][0]["firstTimestamp"].endswith("Z")
    assert server.client.get("/api/v2/jobs/ann~job/events?type=odd").status == 400


def test_waiting_ends_with_the_change(server, spec):
    server.submit(spec(command="sleep 9"))
    server.running()
    reply = server.client.get("/api/v2/jobs/ann~job/wait?state=RUNNING&timeout=0.01").json()
    assert reply["jobStatus"]["state"] == "RUNNING"
    server.loop.call_later(0.05, server.world.end, server.handle(), 0)
    reply = server.client.get("/api/v2/jobs/ann~job/wait?until=terminal&timeout=15").json()
    assert reply["jobStatus"]["state"] == "SUCCEEDED"


def test_a_finished_job_can_be_deleted_with_its_files(server, spec):
    server.submit(spec(command="sleep 9"))
    server.running()
    assert server.client.delete("/api/v2/jobs/ann~job").status == 409
    server.end()
    row = server.finished()
    folders = [
        server.services.settings.tasks / str(row.id),
        server.services.settings.job_folder("ann", "job"),
    ]
    assert all(folder.exists() for folder in folders)
    assert server.client.delete("/api/v2/jobs/ann~job").status == 200
    assert not any(folder.exists() for folder in folders)
    assert server.client.get("/api/v2/jobs/ann~job").status == 404
    assert server.client.get("/api/v2/jobs?limit=0&withTotalCount=true").json()["totalCount"] == 0
    assert server.submit(spec()).status == 202


def test_a_large_job_is_encoded_once_per_change(server, spec):
    wide = spec(command="sleep 9", instances=150)
    wide["taskRoles"]["worker"]["resourcePerInstance"] = {"cpu": 0, "memoryMB": 1, "gpu": 0}
    server.submit(wide)
    server.running()
    reply = server.client.get("/api/v2/jobs/ann~job")
    assert len(reply.json()["taskRoles"]["worker"]["taskStatuses"]) == 150
    again = server.client.get("/api/v2/jobs/ann~job", headers={"if-none-match": reply.headers["etag"]})
    assert again.status in (200, 304)


def test_task_history(server, spec):
    text = spec(command="exit 3", extras={"gangAllocation": False})
    text["taskRoles"]["worker"]["taskRetryCount"] = 2
    server.submit(text)
    server.finished()
    path = "/api/v2/jobs/ann~job/attempts/0/taskRoles/worker/taskIndex/0/attempts"
    task = server.client.get(path).json()
    assert [one["attemptId"] for one in task["attempts"]] == [2, 1, 0]
    assert (task["retries"], task["accountableRetries"], task["taskState"]) == (2, 2, "FAILED")
    assert task["attempts"][0]["containerExitCode"] == 255
    assert server.client.get(path.replace("taskIndex/0", "taskIndex/9")).code == "NoJobError"


def test_server_status_and_stop(server):
    status = server.client.get("/api/v2/server").json()
    assert status["launcher"] == "fake" and status["capacity"] == {"cpu": 8, "memory_mb": 65536, "gpu": 4}
    assert server.client.post("/api/v2/server/stop").status == 202
    server.run(server.stopped.wait())


def test_the_token_of_a_job_holds_until_it_is_over(server, spec):
    server.submit(spec(command="sleep 9"))
    server.running()
    env = server.world.tasks[server.handle()].spec.env
    inside = server.client.acting_as(env["OPAI_TOKEN"])
    assert inside.get("/api/v2/jobs/ann~job").status == 200
    server.end()
    server.finished()
    assert inside.get("/api/v2/jobs/ann~job").code == "UnauthorizedUserError"

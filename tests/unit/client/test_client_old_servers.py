"""OpenPAI before 1.8: what is missing is noticed and made up for."""

from __future__ import annotations

import pytest
from client_doubles import Answer

from openpaisdk.errors import NotFoundError, OpenPAIError

ROWS = [
    {"name": f"job{n}", "username": user, "state": state, "virtualCluster": vc, "createdTime": n}
    for n, (user, state, vc) in enumerate(
        [
            ("me", "RUNNING", "default"),
            ("me", "FAILED", "vc1"),
            ("ann", "RUNNING", "vc1"),
            ("me", "RUNNING", "vc1"),
        ]
    )
]


@pytest.fixture
def old(answers):
    """Before 1.2 the list knows only `username` and is always a bare array."""
    answers.table["GET /jobs"] = lambda request: [
        row for row in ROWS if request.query.get("username") in (None, row["username"])
    ]


@pytest.mark.usefixtures("old")
@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({}, ["job3", "job1", "job0"]),
        ({"all_users": True}, ["job3", "ann~job2", "job1", "job0"]),
        ({"state": "running"}, ["job3", "job0"]),
        ({"vc": "vc1", "all_users": True}, ["job3", "ann~job2", "job1"]),
        ({"keyword": "vc1"}, ["job3", "job1"]),
        ({"limit": 1, "offset": 1}, ["job1"]),
        ({"order": "jobName,ASC"}, ["job0", "job1", "job3"]),
        ({"username": "ann,bob"}, []),
        ({"limit": 0}, []),
    ],
)
def test_lists_before_1_2(cluster, filters, names):
    assert cluster.jobs(name_only=True, **filters) == names


@pytest.mark.usefixtures("old")
def test_pages_before_1_2(cluster):
    page = cluster.jobs_page(limit=2, state="RUNNING", all_users=True)
    assert page["totalCount"] == 3
    assert [row["name"] for row in page["data"]] == ["job3", "job2"]
    assert [row["name"] for row in cluster.iter_jobs(page=2)] == ["job3", "job1", "job0"]


def test_attempts_before_1_3(cluster, answers):
    answers.table["GET /jobs/me~j"] = {"name": "j", "jobStatus": {"attemptId": 1}}
    assert cluster.job("j", attempt=1)["name"] == "j"
    with pytest.raises(NotFoundError, match="attempt 0 of 'j'"):
        cluster.job("j", attempt=0)
    with pytest.raises(NotFoundError, match="does not know GET"):
        cluster.task_history("j", "worker", 0)


def test_an_unknown_attempt_is_not_an_old_server(cluster, answers):
    answers.table["GET /jobs/me~j/attempts/9"] = Answer(404, {"code": "NoJobError", "message": "no"})
    with pytest.raises(NotFoundError):
        cluster.job("j", attempt=9)
    assert len(answers.calls) == 1


def test_events_skus_and_history_that_are_not_there(cluster):
    assert cluster.events("j") == []
    assert cluster.sku_types() == {}
    assert cluster.job_attempts_healthy("j") is False


def test_history_that_is_off(cluster, answers):
    answers.table["GET /jobs/me~j/job-attempts/healthz"] = Answer(501, "off")
    assert cluster.job_attempts_healthy("j") is False
    answers.table["GET /jobs/me~j/job-attempts/healthz"] = Answer(500, {"message": "broken"})
    with pytest.raises(OpenPAIError):
        cluster.job_attempts_healthy("j")


def test_a_job_that_history_does_not_know(cluster, answers):
    answers.table["GET /jobs/me~j/job-attempts"] = Answer(404, b"null", {"content-type": "application/json"})
    with pytest.raises(NotFoundError, match="there is no job 'j'"):
        cluster.job_attempts("j")


def test_absent_keys_of_a_job_that_was_just_submitted(cluster, answers):
    answers.table["GET /jobs/me~j"] = {"name": "j", "jobStatus": {"state": "WAITING"}, "taskRoles": {}}
    assert cluster.ssh_info("j") == []
    assert cluster.why("j")["state"] == "WAITING"


@pytest.mark.parametrize(
    ("status", "events", "text", "hint"),
    [
        (
            {"state": "WAITING", "virtualCluster": "vc1"},
            [],
            "j waits for resources of the virtual cluster 'vc1'",
            "free",
        ),
        (
            {"state": "WAITING"},
            [{"type": "Normal"}, {"type": "Warning", "reason": "FailedScheduling", "message": "no GPU "}],
            "j waits: FailedScheduling: no GPU",
            "free",
        ),
        ({"state": "WAITING", "retryDelayTime": 30}, [], "j waits 30 s before the next attempt", None),
        ({"state": "RUNNING", "retries": 2}, [], "j runs, after 2 retries", None),
        ({"state": "STOPPED"}, [], "j was stopped", None),
        ({"state": "SUCCEEDED"}, [], "j succeeded", None),
        ({"state": "ODD"}, [], "j is in state ODD", None),
        (
            {
                "state": "FAILED",
                "appExitCode": 255,
                "appExitSpec": {"reason": "unknown failure. ", "solution": ["Look at the log.", "Ask."]},
                "appExitMessages": {"runtime": {"originUserExitCode": 3, "errorLogs": {"user": "x\nboom\n"}}},
                "appExitTriggerTaskRoleName": "worker",
                "appExitTriggerTaskIndex": 1,
            },
            [],
            "j failed with exit code 3 in worker/1: unknown failure. (last error: boom)",
            "Look at the log; Ask",
        ),
    ],
)
def test_why_in_words(cluster, answers, status, events, text, hint):
    answers.table["GET /jobs/me~j"] = {"jobStatus": status}
    answers.table["GET /jobs/me~j/events"] = {"data": events}
    found = cluster.why("j")
    assert (found["job"], found["state"], found["text"]) == ("j", status["state"], text)
    assert found["hint"] == hint or (hint == "free" and "opai cluster resources" in found["hint"])


def test_why_from_the_exit_code_alone(cluster, answers):
    answers.table["GET /jobs/me~j"] = {"jobStatus": {"state": "FAILED", "appExitCode": 137}}
    found = cluster.why("j")
    assert found["text"].startswith("j failed with exit code 137: ")
    assert found["hint"]

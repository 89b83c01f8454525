"""Every operation: the call that goes out and what comes back."""

from __future__ import annotations

import json

import pytest

from openpaisdk.core import Client, Cluster, OpenPAIClient, in_job_container
from openpaisdk.errors import ConfigError, NotFoundError, UsageError

ROW = {"name": "j", "username": "me", "state": "RUNNING", "submissionTime": 1, "virtualCluster": "default"}

# name, arguments, named arguments, call, query, data sent, answer, result (None: the answer itself)
OPERATIONS = [
    ("info", (), {}, "GET /info", {}, None, {"version": "v1.8.1"}, None),
    ("authn_info", (), {}, "GET /authn/info", {}, None, {"authn_type": "basic"}, None),
    ("alerts", (), {}, "GET /alerts", {}, None, [{"labels": {}}], None),
    ("kubernetes_nodes", (), {}, "GET /kubernetes/nodes", {}, None, {"items": []}, None),
    (
        "kubernetes_pods",
        (),
        {"namespace": "n", "label_selector": "a=b"},
        "GET /kubernetes/pods",
        {"namespace": "n", "labelSelector": "a=b"},
        None,
        {"items": []},
        None,
    ),
    ("server_status", (), {}, "GET /server", {}, None, {"pid": 1}, None),
    (
        "signal",
        ("mine", "checkpoint"),
        {"task": "worker/0"},
        "POST /jobs/me~mine/signal",
        {},
        {"name": "checkpoint", "task": "worker/0"},
        {"tasks": ["worker/0"]},
        ["worker/0"],
    ),
    ("stop_server", (), {}, "POST /server/stop", {}, None, {"message": "ok"}, None),
    (
        "login",
        ("ann", "secret"),
        {"expiration": 60},
        "POST /authn/basic/login",
        {},
        {"username": "ann", "password": "secret", "expiration": 60},
        {"user": "ann", "token": "jwt", "admin": True},
        None,
    ),
    ("logout", (), {}, "DELETE /authn/basic/logout", {}, None, {"message": "Logout successfully"}, ...),
    ("tokens", (), {}, "GET /tokens", {}, None, {"tokens": ["a", "b"]}, ["a", "b"]),
    ("tokens", (), {}, "GET /tokens", {}, None, {"tokens": {}}, []),
    ("create_application_token", (), {}, "POST /tokens/application", {}, {}, {"token": "x"}, "x"),
    ("revoke_token", ("a.b/c",), {}, "DELETE /tokens/a.b%2Fc", {}, None, {"message": "ok"}, ...),
    ("check_token", (), {}, "GET /tokens/check", {}, None, {"username": "me", "admin": False}, None),
    ("users", (), {}, "GET /users", {}, None, [{"username": "me"}], None),
    ("get_user", ("a b",), {}, "GET /users/a%20b", {}, None, {"username": "a b"}, None),
    ("get_user", (), {}, "GET /users/me", {}, None, {"username": "me"}, None),
    (
        "create_user",
        ("u", "password"),
        {"virtual_clusters": ["default"]},
        "POST /users",
        {},
        {
            "username": "u",
            "password": "password",
            "email": "",
            "virtualCluster": ["default"],
            "admin": False,
            "extension": {},
        },
        {"message": "ok"},
        None,
    ),
    (
        "update_user",
        ("u",),
        {"admin": True, "virtual_clusters": []},
        "PUT /users",
        {},
        {"patch": True, "data": {"username": "u", "virtualCluster": [], "admin": True}},
        {"message": "ok"},
        None,
    ),
    (
        "update_me",
        (),
        {"email": "a@b.c"},
        "PUT /users/me",
        {},
        {"patch": True, "data": {"username": "me", "email": "a@b.c"}},
        {"message": "ok"},
        None,
    ),
    ("delete_user", ("u",), {}, "DELETE /users/u", {}, None, {"message": "ok"}, None),
    ("set_user_groups", ("u", ["a"]), {}, "PUT /users/u/grouplist", {}, {"grouplist": ["a"]}, {}, None),
    ("add_user_to_group", ("u", "g"), {}, "PUT /users/u/group", {}, {"groupname": "g"}, {}, None),
    ("remove_user_from_group", ("u", "g"), {}, "DELETE /users/u/group", {}, {"groupname": "g"}, {}, None),
    (
        "set_user_extension",
        ("u", {"a": 1}),
        {},
        "PUT /users/u/extension",
        {},
        {"extension": {"a": 1}},
        {},
        None,
    ),
    (
        "set_user_virtual_clusters",
        ("u", ("a", "b")),
        {},
        "PUT /users/u/virtualcluster",
        {},
        {"virtualCluster": ["a", "b"]},
        {},
        None,
    ),
    ("set_password", ("u", "new"), {}, "PUT /users/u/password", {}, {"newPassword": "new"}, {}, None),
    (
        "set_password",
        ("u", "new"),
        {"old": "old"},
        "PUT /users/u/password",
        {},
        {"oldPassword": "old", "newPassword": "new"},
        {},
        None,
    ),
    ("set_email", ("u", "e"), {}, "PUT /users/u/email", {}, {"email": "e"}, {}, None),
    ("set_admin", ("u", False), {}, "PUT /users/u/admin", {}, {"admin": False}, {}, None),
    ("groups", (), {}, "GET /groups", {}, None, [], None),
    ("group", ("g",), {}, "GET /groups/g", {}, None, {"groupname": "g"}, None),
    ("group_members", ("g",), {}, "GET /groups/g/userlist", {}, None, [], None),
    (
        "create_group",
        ("g",),
        {"description": "d"},
        "POST /groups",
        {},
        {"groupname": "g", "description": "d", "externalName": "", "extension": {}},
        {},
        None,
    ),
    (
        "update_group",
        ("g",),
        {"external_name": "e"},
        "PUT /groups",
        {},
        {"patch": True, "data": {"groupname": "g", "externalName": "e"}},
        {},
        None,
    ),
    ("delete_group", ("g",), {}, "DELETE /groups/g", {}, None, {}, None),
    (
        "set_group_extension",
        ("g", {"a": 1}),
        {},
        "PUT /groups/g/extension",
        {},
        {"extension": {"a": 1}},
        {},
        None,
    ),
    (
        "set_group_key",
        ("g", ["acls", "admin"], True),
        {},
        "PUT /groups/g/extension/acls/admin",
        {},
        {"data": True},
        {},
        None,
    ),
    (
        "set_group_description",
        ("g", "d"),
        {},
        "PUT /groups/g/description",
        {},
        {"description": "d"},
        {},
        None,
    ),
    (
        "set_group_external_name",
        ("g", "e"),
        {},
        "PUT /groups/g/externalname",
        {},
        {"externalName": "e"},
        {},
        None,
    ),
    ("virtual_clusters", (), {}, "GET /virtual-clusters", {}, None, {"default": {}}, None),
    ("virtual_cluster", ("default",), {}, "GET /virtual-clusters/default", {}, None, {"capacity": 1}, None),
    ("node_gpus", (), {}, "GET /virtual-clusters", {"nodes": "true"}, None, {"n1": {"gpuTotal": 4}}, None),
    ("sku_types", ("vc1",), {}, "GET /cluster/sku-types", {"vc": "vc1"}, None, {"gpu": {"cpu": 1}}, None),
    (
        "update_virtual_cluster",
        ("v", {"vcCapacity": 1}),
        {},
        "PUT /virtual-clusters/v",
        {},
        {"vcCapacity": 1},
        {},
        None,
    ),
    (
        "set_virtual_cluster_status",
        ("v", "stopped"),
        {},
        "PUT /virtual-clusters/v/status",
        {},
        {"vcStatus": "stopped"},
        {},
        None,
    ),
    ("delete_virtual_cluster", ("v",), {}, "DELETE /virtual-clusters/v", {}, None, {}, None),
    ("storages", (), {}, "GET /storages", {}, None, {"storages": [{"name": "s"}]}, [{"name": "s"}]),
    ("storages", (), {"default": True}, "GET /storages", {"default": "true"}, None, {"storages": []}, []),
    ("storage", ("s",), {}, "GET /storages/s", {}, None, {"name": "s"}, None),
    ("storage_configs", (["a", "b"],), {}, "GET /storage/config", {"names": "a,b"}, None, [], None),
    ("storage_servers", (), {}, "GET /storage/server", {}, None, [], None),
    ("jobs", (), {}, "GET /jobs", {"username": "me"}, None, [ROW], None),
    (
        "jobs",
        (),
        {"all_users": True, "name_only": True},
        "GET /jobs",
        {},
        None,
        [ROW, {**ROW, "username": "x"}],
        ["j", "x~j"],
    ),
    (
        "jobs",
        (),
        {
            "username": "a,b",
            "state": ["running", "WAITING"],
            "vc": "default",
            "keyword": "x y",
            "limit": 0,
            "offset": 20,
            "order": "jobName,ASC",
            "priority": "prod",
            "tags": ["t"],
            "without_tags": "u",
        },
        "GET /jobs",
        {
            "username": "a,b",
            "state": "RUNNING,WAITING",
            "vc": "default",
            "keyword": "x y",
            "limit": "0",
            "offset": "20",
            "order": "jobName,ASC",
            "jobPriority": "prod",
            "tagsContain": "t",
            "tagsNotContain": "u",
        },
        None,
        [],
        None,
    ),
    (
        "jobs_page",
        (),
        {"limit": 1, "all_users": True},
        "GET /jobs",
        {"limit": "1", "withTotalCount": "true"},
        None,
        {"totalCount": 9, "data": [ROW]},
        None,
    ),
    ("job", ("j",), {}, "GET /jobs/me~j", {}, None, {"name": "j"}, None),
    ("job", ("u~j",), {"attempt": 2}, "GET /jobs/u~j/attempts/2", {}, None, {"name": "j"}, None),
    ("job", ("j", "u"), {}, "GET /jobs/u~j", {}, None, {"name": "j"}, None),
    ("job_config", ("j",), {}, "GET /jobs/me~j/config", {}, None, {"name": "j"}, None),
    ("job_config_text", ("j",), {}, "GET /jobs/me~j/config", {}, None, "name: j\n", "name: j\n"),
    ("stop", ("j",), {}, "PUT /jobs/me~j/executionType", {}, {"value": "STOP"}, {"status": 202}, None),
    ("start", ("j",), {}, "PUT /jobs/me~j/executionType", {}, {"value": "START"}, {"status": 202}, None),
    ("add_tag", ("j", "t"), {}, "PUT /jobs/me~j/tag", {}, {"value": "t"}, {"status": 200}, None),
    ("remove_tag", ("j", "t"), {}, "DELETE /jobs/me~j/tag", {}, {"value": "t"}, {"status": 200}, None),
    (
        "events",
        ("j", "Warning"),
        {},
        "GET /jobs/me~j/events",
        {"type": "Warning"},
        None,
        {"totalCount": 1, "data": [1]},
        [1],
    ),
    ("delete_job", ("j",), {}, "DELETE /jobs/me~j", {}, None, {}, ...),
    ("why", ("j",), {}, "GET /jobs/me~j/why", {}, None, {"text": "waits"}, None),
    ("job_attempts_healthy", ("j",), {}, "GET /jobs/me~j/job-attempts/healthz", {}, None, "ok", True),
    ("job_attempts", ("j",), {}, "GET /jobs/me~j/job-attempts", {}, None, [{"attemptIndex": 0}], None),
    ("job_attempt", ("j", 1), {}, "GET /jobs/me~j/job-attempts/1", {}, None, {"attemptIndex": 1}, None),
    (
        "task_history",
        ("j", "worker", 3, 1),
        {},
        "GET /jobs/me~j/attempts/1/taskRoles/worker/taskIndex/3/attempts",
        {},
        None,
        {"attempts": []},
        None,
    ),
    (
        "log_locations",
        ("j", "worker", 1),
        {"attempt": 2, "tail": True},
        "GET /jobs/me~j/attempts/0/taskRoles/worker/taskIndex/1/attempts/2/logs",
        {"tail-mode": "true"},
        None,
        {"locations": [{"name": "stdout", "uri": "/log-manager/x?token=t"}]},
        [{"name": "stdout", "uri": "http://pai.example.com/log-manager/x?token=t"}],
    ),
    (
        "exec_start",
        ("j", ["ls", "-l"]),
        {"task": "worker/0", "tty": True},
        "POST /jobs/me~j/exec",
        {},
        {"command": ["ls", "-l"], "tty": True, "rows": 24, "cols": 80, "task": "worker/0"},
        {"id": "e1"},
        "e1",
    ),
    (
        "exec_resize",
        ("j", "e1", 30, 90),
        {},
        "POST /jobs/me~j/exec/e1/resize",
        {},
        {"rows": 30, "cols": 90},
        {},
        ...,
    ),
]


@pytest.mark.parametrize(
    ("name", "given", "named", "call", "query", "sent", "answer", "result"),
    OPERATIONS,
    ids=[f"{item[0]}-{number}" for number, item in enumerate(OPERATIONS)],
)
def test_operation(cluster, answers, name, given, named, call, query, sent, answer, result):
    answers.table[call] = answer
    found = getattr(cluster, name)(*given, **named)
    if result is not ...:
        assert found == (answer if result is None else result)
    request = answers.calls[0]
    assert f"{request.method} {request.path}" == call
    assert request.full_path.startswith("/rest-server/api/v2/")
    assert request.query == query
    assert request.data == sent
    if name in ("info", "authn_info", "login"):
        assert "authorization" not in request.headers
    else:
        assert request.headers["authorization"] == "Bearer t0ken"
    if sent is not None:
        assert request.headers["content-type"] == "application/json"


def test_every_public_method_is_in_the_table_or_has_its_own_tests():
    own = {
        "close",
        "follow",
        "from_env",
        "from_json",
        "iter_jobs",
        "job_link",
        "job_path",
        "open",
        "read_log",
        "read_log_bytes",
        "request",
        "ssh_info",
        "submit",
        "wait",
        "exec_input",
        "exec_output",
    }
    public = {name for name in dir(Cluster) if not name.startswith("_") and callable(getattr(Cluster, name))}
    assert public == own | {item[0] for item in OPERATIONS}


def test_names():
    assert Client is Cluster and OpenPAIClient is Cluster


def test_iter_jobs_goes_page_by_page(cluster, answers):
    everything = [{**ROW, "name": f"j{number}"} for number in range(7)]

    def page(request):
        offset = int(request.query.get("offset", 0))
        return everything[offset : offset + int(request.query["limit"])]

    answers.table["GET /jobs"] = page
    assert [row["name"] for row in cluster.iter_jobs(page=3, state="running")] == [f"j{n}" for n in range(7)]
    assert [call.query["limit"] for call in answers.calls] == ["3", "3", "3"]
    assert len(list(cluster.iter_jobs(page=3, limit=4))) == 4
    assert list(cluster.iter_jobs(page=3, limit=2, name_only=True)) == ["j0", "j1"]


def test_unknown_state_and_bad_tag(cluster, answers):
    with pytest.raises(UsageError, match="'SLEEPING'"):
        cluster.jobs(state="sleeping")
    with pytest.raises(UsageError, match="'a,b'"):
        cluster.add_tag("j", "a,b")
    with pytest.raises(NotFoundError, match="'~j'"):
        cluster.job("~j")
    assert answers.calls == []


def test_config_as_yaml(cluster, answers):
    answers.table["GET /jobs/me~j/config"] = "name: j\ntaskRoles: {}\nsecrets: '******'\n"
    assert cluster.job_config("j") == {"name": "j", "taskRoles": {}, "secrets": "******"}


def test_names_are_quoted(cluster, answers):
    answers.table["GET /jobs/u%20x~j%3F"] = {"name": "j"}
    assert cluster.job("u x~j?") == {"name": "j"}


def test_ssh_info(cluster, answers):
    answers.table["GET /jobs/me~j"] = {
        "taskRoles": {
            "worker": {
                "taskStatuses": [
                    {
                        "taskIndex": 0,
                        "containerIp": "10.0.0.5",
                        "containerPorts": {"ssh": "23660,23661"},
                        "containerNodeName": "n1",
                        "taskState": "RUNNING",
                    },
                    {"taskIndex": 1, "containerIp": None, "containerPorts": {}},
                ]
            }
        }
    }
    assert cluster.ssh_info("j") == [
        {"task": "worker/0", "host": "10.0.0.5", "port": 23660, "node": "n1", "state": "RUNNING"}
    ]


def test_exec_input_and_output(cluster, answers):
    answers.table["POST /jobs/me~j/exec/e1/input"] = {}
    answers.table["GET /jobs/me~j/exec/e1/output"] = (
        200,
        b"event: out\ndata: aGk=\n\nevent: err\ndata: /w==\n\nevent: exit\ndata: MA==\n\n",
    )
    cluster.exec_input("j", "e1", b"\x00x", end=True)
    assert (answers.calls[0].body, answers.calls[0].query) == (b"\x00x", {"eof": "1"})
    assert list(cluster.exec_output("j", "e1")) == [("out", b"hi"), ("err", b"\xff"), ("exit", b"0")]


def test_job_link(cluster):
    assert cluster.job_link("u~j") == "http://pai.example.com/job-detail.html?username=u&jobName=j"


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("http://h", "/rest-server/api/v2/info"),
        ("http://h/", "/rest-server/api/v2/info"),
        ("http://h/rest-server", "/rest-server/api/v2/info"),
        ("http://h/rest-server/api/v2/", "/rest-server/api/v2/info"),
        ("http://h:9186/api", "/api/v2/info"),
        ("http://h/pai/rest-server", "/pai/rest-server/api/v2/info"),
        ("http://h/pai", "/pai/rest-server/api/v2/info"),
    ],
)
def test_addresses(make_cluster, answers, uri, path):
    answers.table["GET /info"] = {"launcherType": "k8s"}
    answers.table["GET " + path] = {"launcherType": "k8s"}
    make_cluster(pai_uri=uri).info()
    assert answers.calls[0].full_path == path


def bare_server(missing):
    """A REST server reached directly, which knows nothing of /rest-server."""

    def answer(method, url, headers, body):
        if "/rest-server/" in url:
            return missing
        if url.endswith("/api/v2/info"):
            return 200, {"content-type": "application/json"}, b'{"launcherType": "k8s"}'
        return 200, {"content-type": "application/json"}, json.dumps({"url": url}).encode()

    return answer


@pytest.mark.parametrize(
    "missing",
    [
        (404, {"content-type": "application/json"}, b'{"code": "NoApiError", "message": "no"}'),
        (404, {"content-type": "text/html"}, b"<html>"),
        (200, {"content-type": "text/html"}, b"<!doctype html>"),
        (405, {"content-type": "text/html"}, b"<html>"),
    ],
)
def test_falls_back_to_a_server_without_gateway(make_cluster, missing):
    cluster = make_cluster(transport=bare_server(missing))
    assert cluster.job("j") == {"url": "http://pai.example.com/api/v2/jobs/me~j"}


def test_a_missing_call_does_not_move_the_address(make_cluster, answers):
    """Behind the gateway `/api` is the portal, which is no REST server."""
    answers.table["GET /api/v2/info"] = (200, "<html>", {})
    cluster = make_cluster()
    with pytest.raises(NotFoundError, match="does not know GET"):
        cluster.alerts()
    answers.table["GET /jobs/me~j"] = {"name": "j"}
    assert cluster.job("j") == {"name": "j"}
    assert answers.calls[-1].full_path == "/rest-server/api/v2/jobs/me~j"


def test_extensions_are_learnt_from_any_answer(cluster, answers):
    answers.table["GET /info"] = {}
    cluster.info()
    assert cluster.extensions == frozenset()
    answers.extra = {"OpenPAI-Extensions": "wait, follow,submit-key"}
    cluster.info()
    assert cluster.extensions == {"wait", "follow", "submit-key"}


def test_from_json(tmp_path, own_home):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"lab": {"pai_uri": "http://lab", "user": "u"}, "x": {"pai_uri": "http://x"}}))
    client, config = Client.from_json(path, "lab")
    assert (client.portal_uri, config.user, client.user) == ("http://lab", "u", "u")
    with pytest.raises(NotFoundError) as caught:
        Client.from_json(path, "lap")
    assert caught.value.hint == "did you mean `lab`?"
    with pytest.raises(ConfigError, match="2 clusters"):
        Client.from_json(path)


def test_from_env(own_home, monkeypatch):
    with pytest.raises(ConfigError, match="describes no cluster"):
        Client.from_env()
    monkeypatch.setenv("OPAI_PAI_URI", "https://env")
    monkeypatch.setenv("OPAI_TOKEN", "t")
    client = Client.from_env()
    assert (client.portal_uri, client.config.token) == ("https://env", "t")


def test_open_and_the_default_cluster(own_home, monkeypatch):
    own_home.mkdir()
    (own_home / "clusters.json").write_text('{"lab": {"pai_uri": "http://lab"}}')
    monkeypatch.setenv("OPAI_TIMEOUT", "7")
    assert Cluster.open("lab").transport.timeout == 7.0
    assert Cluster.open().config.alias == "lab"
    with Cluster() as cluster:
        assert cluster.config.alias == "lab"
        assert "lab" in repr(cluster)


@pytest.mark.parametrize(
    ("variables", "inside"),
    [
        ({}, False),
        ({"PAI_CONTAINER_ID": "x"}, True),
        ({"PAI_JOB_NAME": "u~j", "PAI_TASK_INDEX": "0"}, True),
        ({"PAI_JOB_NAME": "u~j"}, False),
        ({"PAI_CONTAINER_ID": ""}, False),
    ],
)
def test_in_job_container(own_home, monkeypatch, variables, inside):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert in_job_container() is inside

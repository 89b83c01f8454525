"""`<% %>` references, deployments and the script that a task runs."""

from __future__ import annotations

import time
from typing import Any

import pytest

from openpaisdk.protocol import cautions, entry_script, image_uri, load, render, render_auth, unresolved

CONTEXT = {
    "$parameters": {
        "a": {"b": 1.5}, "list": ["x", "y", ["p", "q"]], "none": None, "zero": 0, "no": False,
        "empty": "",
        "whole": 2.0, "tiny": 1e-7, "small": 0.000012, "huge": 1e21,
        "map": {"k": 1}, "html": "<a & 'b'>", "x-y": 3,
    },
    "$data": {"uri": ["first", "second"]},
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<% $parameters.a.b %>", "1.5"),
        ("<%$parameters.list[1]%>", "y"),
        ("<%   $parameters.list[2][0]\t%>", "p"),
        ("<% $parameters.list.0 %>", "x"),
        ("<% $parameters.list %>", "x,y,p,q"),
        ("<% $data.uri[0] %>/<% $data.uri[1] %>", "first/second"),
        ("<% $parameters.zero %>|<% $parameters.no %>|<% $parameters.empty %>|", "0|false||"),
        ("<% $parameters.whole %> <% $parameters.small %>", "2 0.000012"),
        ("<% $parameters.tiny %> <% $parameters.huge %>", "1e-7 1e+21"),
        ("<% $parameters.map %>", '{"k": 1}'),
        ("<% $parameters.html %>", "<a & 'b'>"),
        ("<% $parameters.x-y %>", "3"),
        ("<% $parameters.none %>", "<% $parameters.none %>"),
        ("<% $parameters.nope %> <% $secrets.key %>", "<% $parameters.nope %> <% $secrets.key %>"),
        ("<% $parameters.list[9] %>", "<% $parameters.list[9] %>"),
        ("<% $parameters.a.b.c %>", "<% $parameters.a.b.c %>"),
        ("a<%# s %>b<%/ s %>c", "ac"),
        ("a<%^ s %>b<%# s %>x<%/ s %>y<%/ s %>c", "ac"),
        ("a<%# never closed %>b", "ab"),
        ("a<%> partial %>b<%! comment %>c<%& $parameters.zero %>d<%{$parameters.zero}%>e", "abcde"),
        ("printf '<%s>' x", "printf '<%s>' x"),
        ("printf '<%s>' <% $parameters.zero %>", "printf '<%s>' 0"),
        ("  trimmed \n", "trimmed"),
        ("", ""),
    ],
)
def test_render(text: str, expected: str) -> None:
    assert render(text, CONTEXT) == expected


def test_unresolved() -> None:
    text = "<% $parameters.a %> <%$secrets.b[0]%> <% $parameters.a %> <%# x %> <% else %>"
    assert unresolved(text) == ["$parameters.a", "$secrets.b.0"]
    assert unresolved(render("<% $parameters.zero %>", CONTEXT)) == []


JOB = """
protocolVersion: 2
name: j
type: job
prerequisites:
  - {type: dockerimage, name: img, uri: repo/image, auth: {username: me, password: "<% $secrets.reg.pw %>"}}
  - {type: data, name: d, uri: [/data/one, /data/two]}
  - {type: output, name: o, uri: /out}
  - {type: script, name: s, uri: /code, branch: main}
parameters: {lr: 1e-4, user: "<% $secrets.user %>"}
secrets: {reg: {pw: "a&b<c>"}, user: "me & you", pair: [1, 2]}
taskRoles:
  worker:
    instances: 1
    dockerImage: img
    data: d
    output: o
    script: s
    resourcePerInstance: {cpu: 1, memoryMB: 128, gpu: 0}
    commands:
      - "  python train.py --lr <% $parameters.lr %> --data <% $data.uri[1] %>  "
      - cp <% $script.uri %>/<% $script.branch %> <% $output.uri %>
      - login <% $parameters.user %> <% $secrets.pair[1] %> <% $secrets.nope %>
  ps:
    instances: 1
    dockerImage: img
    resourcePerInstance: {cpu: 1, memoryMB: 128, gpu: 0}
    commands: ["serve <% $data.uri[0] %>"]
deployments:
  - name: one
    taskRoles: {worker: {preCommands: [before, before2], postCommands: ["after <% $parameters.lr %>"]}}
  - name: two
    taskRoles: {worker: {preCommands: [other]}}
defaults: {deployment: one}
"""


@pytest.fixture
def job() -> dict[str, Any]:
    data = load(JOB).data
    assert isinstance(data, dict)
    return data


def test_the_entry_script(job: dict[str, Any]) -> None:
    assert entry_script(job, "worker").splitlines() == [
        "before",
        "before2",
        "python train.py --lr 0.0001 --data /data/two",
        "cp /code/main /out",
        "login <% $secrets.user %> <% $secrets.pair[1] %> <% $secrets.nope %>",
        "after 0.0001",
    ]
    assert entry_script(job, "ps") == "serve <% $data.uri[0] %>"


def test_the_entry_script_with_secrets(job: dict[str, Any]) -> None:
    script = entry_script(job, "worker", secrets=job["secrets"])
    assert "login me & you 2 <% $secrets.nope %>" in script
    assert unresolved(script) == ["$secrets.nope"]


def test_deployments_are_chosen_by_name(job: dict[str, Any]) -> None:
    job["defaults"]["deployment"] = "two"
    assert entry_script(job, "worker").splitlines()[0] == "other"
    del job["defaults"]
    assert entry_script(job, "worker").splitlines()[0].startswith("python")


def test_registry_credentials(job: dict[str, Any]) -> None:
    assert render_auth(job, "worker") == ("https://index.docker.io/v1/", "me", "a&b<c>")
    assert render_auth(job, "worker", secrets={"reg": {"pw": "x"}}) == (
        "https://index.docker.io/v1/",
        "me",
        "x",
    )
    job["prerequisites"][0]["auth"]["registryuri"] = "reg.example"
    assert (render_auth(job, "worker") or ("",))[0] == "reg.example"
    del job["prerequisites"][0]["auth"]
    assert render_auth(job, "worker") is None
    assert image_uri(job, "ps") == "repo/image"


def test_cautions_name_references_to_nothing_and_secrets_that_get_changed() -> None:
    text = JOB.replace("<% $parameters.lr %> --data", "<% $parameters.lrr %> <% $secrets.reg.pw %> --data")
    found = cautions(load(text, "job.yaml"))
    assert [(p.keyword, p.value) for p in found] == [
        ("reference", "$parameters.lrr"),
        ("secret", "$secrets.reg.pw"),
        ("reference", "$secrets.nope"),
    ]
    assert found[0].suggestion == "did you mean `lr`?"
    assert "a&b" not in "".join(map(str, found))
    unclosed = cautions(load(JOB.replace("- cp ", "- printf '<%s>' x; cp "), "job.yaml"))
    assert [p.keyword for p in unclosed if p.keyword == "template"] == ["template"]


def test_cautions_name_deployments_for_roles_that_are_not_there(job: dict[str, Any]) -> None:
    before = len(cautions(job))
    job["deployments"][0]["taskRoles"]["wroker"] = {"preCommands": ["never"]}
    found = cautions(job)
    assert len(found) == before + 1
    assert (found[-1].value, found[-1].suggestion) == ("wroker", "did you mean `worker`?")


@pytest.mark.parametrize(
    "text",
    ["<%" + " " * 50_000, "<%#a%>" * 16_000, "<% " * 30_000, "<%#a%>" * 8_000 + "<%/a%>" * 8_000],
    ids=["spaces", "sections", "openings", "nested sections"],
)
def test_hostile_texts_cost_no_time(text: str) -> None:
    started = time.process_time()
    render(text, CONTEXT)
    assert time.process_time() - started < 2

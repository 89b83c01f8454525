"""Every rule of the protocol, broken once, with the line and column that must be reported."""

from __future__ import annotations

import json
import time

import pytest

from openpaisdk.errors import InvalidJobError
from openpaisdk.protocol import Problem, ajv_errors, check, dump, load, require_valid

VALID = """\
protocolVersion: 2
name: hello_1
type: job
version: 1.5
contributor: somebody
description: a small job
prerequisites:
  - type: dockerimage
    name: img
    uri: ubuntu
  - type: data
    name: images
    uri: [/mnt/images]
  - type: output
    name: results
    uri: /mnt/results
  - type: script
    name: code
    uri: /mnt/code
parameters:
  lr: 1e-4
secrets:
  key: hidden
jobRetryCount: 1
taskRoles:
  worker:
    instances: 2
    completion:
      minFailedInstances: 1
      minSucceededInstances: null
    taskRetryCount: 0
    prerequisites: [images]
    dockerImage: img
    data: images
    output: results
    script: code
    extraContainerOptions:
      shmMB: 512
    resourcePerInstance:
      cpu: 4
      memoryMB: 8192
      gpu: 1
      ports:
        tb: 2
    commands:
      - python train.py
deployments:
  - name: prod
    taskRoles:
      worker:
        preCommands: [mkdir -p out]
        postCommands: [ls out]
defaults:
  deployment: prod
  virtualCluster: default
extras:
  submitFrom: test
"""


def problems_of(text: str, *, strict: bool = True) -> list[Problem]:
    return check(load(text, "job.yaml"), strict=strict)


def edited(old: str, new: str) -> str:
    assert VALID.count(old) == 1, f"{old!r} must be in the text once"
    return VALID.replace(old, new)


def line_of(text: str, fragment: str) -> int:
    return text[: text.index(fragment)].count("\n") + 1


def test_a_job_with_every_key_is_valid() -> None:
    assert problems_of(VALID) == []
    assert problems_of(VALID, strict=False) == []
    assert check(load(VALID).data) == []


def test_the_smallest_job_is_valid() -> None:
    text = """\
protocolVersion: "2"
name: hello_1
type: job
prerequisites: [{type: dockerimage, name: img, uri: ubuntu}]
taskRoles:
  worker:
    instances: 1
    dockerImage: img
    resourcePerInstance: {cpu: 1, memoryMB: 128, gpu: 0}
    commands: ["true"]
"""
    assert problems_of(text) == []


# what is replaced, by what; a fragment that finds the line, then column, path, keyword, words of the message
BROKEN = [
    ("protocolVersion: 2", "protocolVersion: 1", "protocolVersion: 1", 18, "protocolVersion", "enum",
     "`2`"),
    ("protocolVersion: 2\n", "", "name: hello_1", 1, "", "required", "`protocolVersion` is missing"),
    ("name: hello_1", "name: hello 1", "name: hello 1", 7, "name", "pattern", "`hello-1` would do"),
    ("name: hello_1", "name: 12", "name: 12", 7, "name", "type",
     "expected a text, got 12; put it in quotes"),
    ("name: hello_1", "name: ''", "name: ''", 7, "name", "pattern", "got ''"),
    ("name: hello_1", "name: " + "x" * 256, "name: x", 7, "name", "maxLength",
     "at most 255 characters, got 256"),
    ("name: hello_1\n", "", "protocolVersion", 1, "", "required", "`name` is missing"),
    ("type: job", "type: jobs", "type: jobs", 7, "type", "enum", "expected `job`, got 'jobs'"),
    ("type: job\n", "", "protocolVersion", 1, "", "required", "`type` is missing"),
    ("version: 1.5", "version: [1]", "version: [1]", 10, "version", "type",
     "a text or a number, got a list"),
    ("version: 1.5", "version: true", "version: true", 10, "version", "type", "got true"),
    ("contributor: somebody", "contributor: 3", "contributor: 3", 14, "contributor", "type",
     "a text, got 3"),
    ("description: a small job", "description: [a]", "description: [a]", 14, "description", "type",
     "a list"),
    ("jobRetryCount: 1", "jobRetryCount: -1", "jobRetryCount", 16, "jobRetryCount", "minimum",
     "at least 0, got -1"),
    ("jobRetryCount: 1", "jobRetryCount: many", "jobRetryCount", 16, "jobRetryCount", "type", "got 'many'"),
    ("jobRetryCount: 1", "jobRetryCount: yes", "jobRetryCount", 16, "jobRetryCount", "type", "got 'yes'"),
    ("jobRetryCount: 1", "jobRetryCnt: 1", "jobRetryCnt", 1, "jobRetryCnt", "additionalProperties",
     "did you mean `jobRetryCount`?"),
    ("extras:\n  submitFrom: test", "extras: some", "extras: some", 9, "extras", "type",
     "expected a mapping"),
    ("parameters:\n  lr: 1e-4", "parameters: [1]", "parameters", 13, "parameters", "type",
     "a mapping, got a list"),
    ("secrets:\n  key: hidden", "secrets: abc", "secrets", 10, "secrets", "type",
     "expected a mapping, got ******"),
    # prerequisites
    ("type: dockerimage", "type: dockerImage", "type: dockerImage", 11, "prerequisites.0.type", "enum",
     "did you mean `dockerimage`?"),
    ("  - type: dockerimage\n", "  - version: 1\n", "- version: 1", 5, "prerequisites.0", "required",
     "`type` is missing"),
    ("    name: img\n", "", "- type: dockerimage", 5, "prerequisites.0", "required", "`name` is missing"),
    ("    uri: ubuntu\n", "", "- type: dockerimage", 5, "prerequisites.0", "required", "`uri` is missing"),
    ("uri: ubuntu", "uri: [ubuntu]", "uri: [ubuntu]", 10, "prerequisites.0.uri", "type",
     "a text, got a list"),
    ("uri: ubuntu", "uri: ubuntu\n    tag: latest", "tag: latest", 5, "prerequisites.0.tag",
     "additionalProperties", "`tag` is not known here"),
    ("uri: ubuntu", "uri: ubuntu\n    auth: me", "auth: me", 11, "prerequisites.0.auth", "type",
     "a mapping"),
    ("uri: ubuntu", "uri: ubuntu\n    auth: {password: 1}", "auth: {", 22, "prerequisites.0.auth.password",
     "type", "got ******"),
    ("uri: [/mnt/images]", "uri: /mnt/images", "uri: /mnt/images", 10, "prerequisites.1.uri", "type",
     "a list"),
    ("uri: [/mnt/images]", "uri: [1]", "uri: [1]", 11, "prerequisites.1.uri.0", "type", "a text, got 1"),
    ("uri: /mnt/results", "uri: [/mnt/results]", "uri: [/mnt/results]", 10, "prerequisites.2.uri", "type",
     "a text"),
    ("uri: /mnt/code", "uri: 5", "uri: 5", 10, "prerequisites.3.uri", "type", "a text, got 5"),
    ("uri: /mnt/code", "require: x", "require: x", 14, "prerequisites.3.require", "type", "a list"),
    ("uri: /mnt/code", "plugin: 1", "plugin: 1", 13, "prerequisites.3.plugin", "type", "a text"),
    ("name: images\n", "name: im ages\n", "name: im ages", 11, "prerequisites.1.name", "pattern",
     "`im-ages`"),
    # task roles
    ("  worker:\n    instances", "  my-worker:\n    instances", "my-worker", 3, "taskRoles.my-worker",
     "additionalProperties", "`myworker` would do"),
    ("instances: 2", "instances: two", "instances: two", 16, "taskRoles.worker.instances", "type",
     "expected an integer of at least 1, got 'two'"),
    ("instances: 2", "instances: '2'", "instances: '2'", 16, "taskRoles.worker.instances", "type",
     "write 2 without quotes"),
    ("instances: 2", "instances: 0", "instances: 0", 16, "taskRoles.worker.instances", "minimum", "got 0"),
    ("instances: 2", "instances: 1.5", "instances: 1.5", 16, "taskRoles.worker.instances", "type",
     "got 1.5"),
    ("instances: 2", "instances: true", "instances: true", 16, "taskRoles.worker.instances", "type",
     "got true"),
    ("instances: 2", "instances:", "instances:", 15, "taskRoles.worker.instances", "type", "got nothing"),
    ("minFailedInstances: 1", "minFailedInstances: x", "minFailedInstances", 27,
     "taskRoles.worker.completion.minFailedInstances", "type", "an integer or null"),
    ("minSucceededInstances: null", "minSucceededInstances: x", "minSucceededInstances", 30,
     "taskRoles.worker.completion.minSucceededInstances", "type", "an integer or null"),
    ("minFailedInstances: 1", "minFailed: 1", "minFailed: 1", 7, "taskRoles.worker.completion.minFailed",
     "additionalProperties", "did you mean `minFailedInstances`?"),
    ("taskRetryCount: 0", "taskRetryCount: 0.5", "taskRetryCount", 21, "taskRoles.worker.taskRetryCount",
     "type", "an integer"),
    ("prerequisites: [images]", "prerequisites: images", "prerequisites: images", 20,
     "taskRoles.worker.prerequisites", "type", "a list"),
    ("    dockerImage: img\n", "", "worker:", 3, "taskRoles.worker", "required",
     "`dockerImage` is missing"),
    ("    commands:\n      - python train.py\n", "", "worker:", 3, "taskRoles.worker", "required",
     "`commands` is missing"),
    ("    commands:\n      - python train.py\n", "    commands: []\n", "commands: []", 15,
     "taskRoles.worker.commands", "minItems", "at least 1 entry"),
    ("- python train.py", "- 7", "- 7", 9, "taskRoles.worker.commands.0", "type", "a text, got 7"),
    ("- python train.py", "- echo: x", "- echo: x", 9, "taskRoles.worker.commands.0", "type", "a mapping"),
    ("    commands:\n      - python", "    commands: python", "commands: python", 15,
     "taskRoles.worker.commands", "type", "begin it with `- `"),
    ("shmMB: 512", "shmMB: 0.5", "shmMB: 0.5", 14, "taskRoles.worker.extraContainerOptions.shmMB", "type",
     "0.5"),
    ("      cpu: 4\n", "", "resourcePerInstance:", 5, "taskRoles.worker.resourcePerInstance", "required",
     "`cpu` is missing"),
    ("      memoryMB: 8192\n", "", "resourcePerInstance:", 5, "taskRoles.worker.resourcePerInstance",
     "required", "`memoryMB` is missing"),
    ("      gpu: 1\n", "", "resourcePerInstance:", 5, "taskRoles.worker.resourcePerInstance", "required",
     "`gpu` is missing"),
    ("memoryMB: 8192", "memoryMB: 8GB", "memoryMB: 8GB", 17,
     "taskRoles.worker.resourcePerInstance.memoryMB", "type", "write 8192, the unit is always MB"),
    ("gpu: 1", "gpu: 0.5", "gpu: 0.5", 12, "taskRoles.worker.resourcePerInstance.gpu", "type", "fractions"),
    ("cpu: 4", "cpu: four", "cpu: four", 12, "taskRoles.worker.resourcePerInstance.cpu", "type",
     "an integer"),
    ("cpu: 4", "cpus: 4", "cpus: 4", 7, "taskRoles.worker.resourcePerInstance.cpus", "additionalProperties",
     "did you mean `cpu`?"),
    ("      ports:\n        tb: 2\n", "      ports: {}\n", "ports: {}", 14,
     "taskRoles.worker.resourcePerInstance.ports", "minProperties", "at least 1 entry"),
    ("tb: 2", "t-b: 2", "t-b: 2", 9, "taskRoles.worker.resourcePerInstance.ports.t-b",
     "additionalProperties", "`t_b` would do"),
    ("tb: 2", "tb: x", "tb: x", 13, "taskRoles.worker.resourcePerInstance.ports.tb", "type", "an integer"),
    ("    resourcePerInstance:\n      cpu", "    resourcesPerInstance:\n      cpu", "resourcesPerInstance",
     5, "taskRoles.worker.resourcesPerInstance", "additionalProperties",
     "did you mean `resourcePerInstance`?"),
    # deployments and defaults
    ("  - name: prod\n    taskRoles", "  - version: 1\n    taskRoles", "- version: 1", 5, "deployments.0",
     "required", "`name` is missing"),
    ("- name: prod", "- name: p rod", "- name: p rod", 11, "deployments.0.name", "pattern", "`p-rod`"),
    ("        preCommands: [mkdir -p out]", "        preCommands: []", "preCommands: []", 22,
     "deployments.0.taskRoles.worker.preCommands", "minItems", "at least 1"),
    ("postCommands: [ls out]", "postCommands: ls", "postCommands: ls", 23,
     "deployments.0.taskRoles.worker.postCommands", "type", "a list"),
    ("postCommands: [ls out]", "after: [ls]", "after: [ls]", 9, "deployments.0.taskRoles.worker.after",
     "additionalProperties", "not known here"),
    ("virtualCluster: default", "virtualCluster: 1", "virtualCluster: 1", 19, "defaults.virtualCluster",
     "type", "a text"),
    # references
    ("dockerImage: img", "dockerImage: imgs", "dockerImage: imgs", 18, "taskRoles.worker.dockerImage",
     "reference", "no dockerimage prerequisite named 'imgs'; did you mean `img`?"),
    ("data: images", "data: results", "data: results", 11, "taskRoles.worker.data", "reference",
     "no data prerequisite named 'results'"),
    ("output: results", "output: nowhere", "output: nowhere", 13, "taskRoles.worker.output", "reference",
     "add {type: output, name: nowhere, uri: ADDRESS}"),
    ("script: code", "script: cod", "script: cod", 13, "taskRoles.worker.script", "reference",
     "mean `code`?"),
    ("prerequisites: [images]", "prerequisites: [img, image]", "prerequisites: [img", 26,
     "taskRoles.worker.prerequisites.1", "reference",
     "no prerequisite named 'image'; did you mean `images`?"),
    ("deployment: prod", "deployment: pro", "deployment: pro", 15, "defaults.deployment", "reference",
     "no deployment named 'pro'; did you mean `prod`?"),
    ("  - type: script\n    name: code", "  - type: data\n    name: images", "uri: /mnt/code", 10,
     "prerequisites.3.uri", "type", "a list"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "fragment", "column", "path", "keyword", "words"), BROKEN)
def test_rule(old: str, new: str, fragment: str, column: int, path: str, keyword: str, words: str) -> None:
    text = edited(old, new)
    found = [p for p in problems_of(text, strict=False) if p.path == path and p.keyword == keyword]
    assert found, f"not reported: {problems_of(text)}"
    assert words in str(found[0])
    assert (found[0].line, found[0].column) == (line_of(text, fragment), column)
    assert str(found[0]).startswith(f"job.yaml:{found[0].line}:{column}: ")


@pytest.mark.parametrize(("old", "new", "fragment", "column", "path", "keyword", "words"), BROKEN)
def test_rule_holds_for_the_same_job_in_json(
    old: str, new: str, fragment: str, column: int, path: str, keyword: str, words: str
) -> None:
    text = dump(load(edited(old, new)).data, "json")
    found = [p for p in problems_of(text, strict=False) if p.path == path and p.keyword == keyword]
    assert found
    assert words in str(found[0])
    assert found[0].line is not None
    last = path.split(".")[-1]
    if keyword not in ("required", "minItems") and not last.isdigit():
        assert f'"{last}"' in text.splitlines()[found[0].line - 1] or not path


def test_a_missing_taskroles_and_an_empty_one() -> None:
    without = VALID[: VALID.index("taskRoles:\n  worker:\n    instances")]
    assert [(p.keyword, p.line) for p in problems_of(without, strict=False)] == [("required", 1)]
    problems = problems_of(without + "taskRoles: {}\n", strict=False)
    assert [(p.keyword, p.path, p.line) for p in problems] == [("minProperties", "taskRoles", 25)]
    problems = problems_of(without + "taskRoles: []\n", strict=False)
    assert [(p.keyword, p.path, p.line) for p in problems] == [("type", "taskRoles", 25)]


def test_a_job_without_prerequisites_cannot_resolve_its_image() -> None:
    start, end = VALID.index("prerequisites:\n"), VALID.index("parameters:\n")
    problems = problems_of(VALID[:start] + VALID[end:])
    assert [p.path for p in problems if p.keyword == "reference"] == [
        "taskRoles.worker.prerequisites.0",
        "taskRoles.worker.dockerImage",
        "taskRoles.worker.data",
        "taskRoles.worker.output",
        "taskRoles.worker.script",
    ]
    assert problems_of(VALID[:start] + "prerequisites: []\n" + VALID[end:])[0].keyword == "minItems"


def test_duplicates_are_named_where_they_stand() -> None:
    text = VALID.replace("parameters:\n", "  - {type: data, name: images, uri: [x]}\nparameters:\n", 1)
    (problem,) = problems_of(text)
    assert (problem.keyword, problem.path, problem.line) == ("duplicate", "prerequisites.4.name", 20)
    same_name_other_type = text.replace("type: data, name: images, uri: [x]", "type: script, name: images")
    assert problems_of(same_name_other_type) == []
    deployment = "  - {name: prod, taskRoles: {worker: {preCommands: [x]}}}\ndefaults:\n"
    (problem,) = problems_of(edited("defaults:\n", deployment))
    assert (problem.keyword, problem.path) == ("duplicate", "deployments.1.name")


def test_a_key_that_stands_twice() -> None:
    text = edited("    instances: 2\n", "    instances: 2\n    dockerImage: img\n")
    (problem,) = problems_of(text)
    assert (problem.keyword, problem.path, problem.line) == (
        "duplicate",
        "taskRoles.worker.dockerImage",
        line_of(text, "    dockerImage: img\n    data"),
    )


@pytest.mark.parametrize("name", ["Worker", "worker_a", "_", "a" * 64])
def test_role_names_that_the_cluster_would_change(name: str) -> None:
    text = VALID.replace("  worker:\n", f"  {name}:\n")
    (problem,) = problems_of(text)
    assert (problem.keyword, problem.line, problem.column) == ("name", line_of(text, f"  {name}:"), 3)
    assert problems_of(text, strict=False) == []


def test_roles_that_collide_are_a_problem_everywhere() -> None:
    role = VALID[VALID.index("  worker:\n") : VALID.index("deployments:")]
    text = edited("deployments:", role.replace("worker", "Work_er") + "deployments:")
    (problem,) = problems_of(text, strict=False)
    assert (problem.keyword, problem.path) == ("duplicate", "taskRoles.Work_er")
    assert problem.line == line_of(text, "  Work_er")
    assert "`worker` and `Work_er` are both `worker`" in problem.message


def test_missing_instances_is_strict_only() -> None:
    text = edited("    instances: 2\n", "")
    (problem,) = problems_of(text)
    assert (problem.keyword, problem.path, problem.line) == (
        "required",
        "taskRoles.worker",
        line_of(text, "  worker:"),
    )
    assert problem.suggestion == "write `instances: 1`"
    assert problems_of(text, strict=False) == []


def test_a_text_over_100_kb() -> None:
    text = VALID + "#" + "x" * (102400 - len(VALID) - 1)
    assert len(text) == 102400
    assert problems_of(text) == []
    (problem,) = problems_of(text + "x")
    assert (problem.keyword, problem.value) == ("size", 102401)
    assert problems_of(text + "x", strict=False) == []
    assert [p.keyword for p in check({**load(VALID).data, "description": "x" * 103000})] == ["size"]


def test_everything_is_reported_at_once_in_the_order_of_the_text() -> None:
    text = VALID.replace("instances: 2", "instances: two").replace("name: hello_1", "name: a b")
    text = text.replace("cpu: 4", "cpus: 4").replace("dockerImage: img", "dockerImage: nope")
    problems = problems_of(text)
    assert [p.path for p in problems] == [
        "name",
        "taskRoles.worker.instances",
        "taskRoles.worker.dockerImage",
        "taskRoles.worker.resourcePerInstance.cpus",
    ]
    assert [p.line for p in problems] == sorted(p.line or 0 for p in problems)
    with pytest.raises(InvalidJobError) as caught:
        require_valid(load(text, "job.yaml"))
    assert [str(p) for p in caught.value.problems] == [str(p) for p in problems]
    assert str(caught.value).count("\n") == 3


@pytest.mark.parametrize("text", ["", "just words", "[1, 2]", "null", "3"])
def test_what_is_no_mapping_at_all(text: str) -> None:
    (problem,) = problems_of(text)
    assert problem.message.startswith("expected a mapping, got ")


def test_whole_floats_are_integers_and_come_out_as_such() -> None:
    data = require_valid(load(edited("instances: 2", "instances: 2.0").replace("tb: 2", "tb: 2.0")))
    worker = data["taskRoles"]["worker"]
    assert type(worker["instances"]) is int
    assert type(worker["resourcePerInstance"]["ports"]["tb"]) is int


def test_a_misspelt_key_is_said_once() -> None:
    text = edited("      cpu: 4\n", "      cpus: 4\n").replace("    instances: 2", "    instance: 2")
    assert [(p.path.rpartition(".")[2], p.suggestion) for p in problems_of(text)] == [
        ("instance", "did you mean `instances`?"),
        ("cpus", "did you mean `cpu`?"),
    ]
    both = problems_of(text.replace("      gpu: 1\n", ""), strict=False)
    assert "required" in {p.keyword for p in both}, "OpenPAI's own validator reports both"


def test_masks_are_not_sent_in_place_of_passwords() -> None:
    text = edited("secrets:\n  key: hidden", "secrets:\n  key: hidden\n  deep: {token: '******'}").replace(
        "uri: ubuntu", "uri: ubuntu\n    auth: {username: me, password: '******'}"
    )
    password, secret = problems_of(text)
    assert (password.path, secret.path) == ("prerequisites.0.auth.password", "secrets.deep.token")
    assert "is only the mask" in password.message
    assert "--set prerequisites.0.auth.password=VALUE" in (password.suggestion or "")
    assert problems_of(text, strict=False) == []


def test_secrets_never_show() -> None:
    text = edited("secrets:\n  key: hidden", "secrets: [hunter2]").replace(
        "uri: ubuntu", "uri: ubuntu\n    auth: {username: 1, password: [hunter2]}"
    )
    problems = problems_of(text)
    assert {p.path for p in problems} == {
        "secrets",
        "prerequisites.0.auth.username",
        "prerequisites.0.auth.password",
    }
    assert "hunter2" not in json.dumps([p.as_dict() for p in problems]) + "".join(map(str, problems))


def test_masked_secrets_of_a_fetched_job_are_explained() -> None:
    (problem,) = problems_of(edited("secrets:\n  key: hidden", "secrets: '******'"))
    assert problem.suggestion == "the secrets of a fetched job are masked; write them again"


def test_the_words_of_the_servers_own_validator() -> None:
    text = edited("instances: 2", "instances: two").replace("cpu: 4", "cpus: 4")
    text = text.replace("uri: [/mnt/images]", "uri: [1]")
    errors = ajv_errors(problems_of(text, strict=False))
    assert [(e["keyword"], e["dataPath"]) for e in errors] == [
        ("type", ".prerequisites[1].uri[0]"),
        ("type", ".taskRoles['worker'].instances"),
        ("required", ".taskRoles['worker'].resourcePerInstance"),
        ("additionalProperties", ".taskRoles['worker'].resourcePerInstance"),
    ]
    assert errors[2]["params"] == {"missingProperty": "cpu"}
    assert errors[3]["params"] == {"additionalProperty": "cpus"}
    assert all(set(e) == {"keyword", "dataPath", "schemaPath", "params", "message"} for e in errors)
    assert json.loads(json.dumps(errors)) == errors


def test_open_places_stay_open() -> None:
    text = edited("shmMB: 512", "infiniband: true\n      anything: 1")
    text = text.replace("virtualCluster: default", "virtualCluster: default\n  more: 1")
    text = text.replace("uri: /mnt/code", "branch: main\n    plugin: com.microsoft.pai.runtimeplugin.git")
    assert problems_of(text) == []


def test_a_problem_as_data() -> None:
    (problem,) = problems_of(edited("instances: 2", "instances: two"))
    assert problem.as_dict() == {
        "source": "job.yaml",
        "line": 27,
        "column": 16,
        "path": "taskRoles.worker.instances",
        "value": "two",
        "keyword": "type",
        "message": "expected an integer of at least 1, got 'two'",
        "suggestion": None,
    }
    assert str(problem) == (
        "job.yaml:27:16: taskRoles.worker.instances: expected an integer of at least 1, got 'two'"
    )


def test_thousands_of_problems_cost_no_time() -> None:
    role = "{dockerImage: imag%d, resourcePerInstance: {cpus: 1}, commands: [x]}"
    text = "prerequisites:\n" + "".join(
        f"- {{type: dockerimage, name: img{i}, uri: u}}\n" for i in range(900)
    )
    text += "taskRoles:\n" + "".join(f"  r{i}: {role % (i + 5000)}\n" for i in range(700))
    started = time.process_time()
    assert len(problems_of(text, strict=False)) > 3000
    assert time.process_time() - started < 3

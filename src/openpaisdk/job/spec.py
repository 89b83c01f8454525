"""The description half of a job: build, edit and check a spec in a few lines, without any cluster."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from typing_extensions import Self

    from openpaisdk.protocol import Document, Problem

DEFAULT_IMAGE = "python:3.11"
DEFAULT_MEMORY_MB = 1024
DEFAULT_MEMORY_MB_PER_GPU = 4096


class JobSpec:
    """A protocol v2 spec with one method per thing people change; every edit returns the job itself."""

    def __init__(self, name: str | None = None, **spec: Any) -> None:
        from openpaisdk.protocol import unique_name

        self.spec: dict[str, Any] = {
            "protocolVersion": 2,
            "name": name or spec.pop("name", None) or unique_name("job"),
            "type": "job",
            **spec,
        }
        self._document: Document | None = None

    @property
    def name(self) -> str:
        """The name on the cluster, without its user."""
        return str(self.spec["name"])

    def task_role(
        self,
        name: str,
        commands: str | Sequence[str],
        *,
        image: str | None = None,
        gpu: int | None = None,
        cpu: int | None = None,
        mem: int | None = None,
        instances: int | None = None,
        ports: Mapping[str, int] | None = None,
        **more: Any,
    ) -> Self:
        """Add or replace a task role; `more` takes the protocol's own keys, such as `completion`."""
        gpus = _whole("gpu", gpu, 0)
        resources: dict[str, Any] = {
            "cpu": _whole("cpu", cpu, 1),
            "memoryMB": _whole("mem", mem, gpus * DEFAULT_MEMORY_MB_PER_GPU or DEFAULT_MEMORY_MB),
            "gpu": gpus,
        }
        if ports:
            resources["ports"] = dict(ports)
        role = {
            "instances": _whole("instances", instances, 1),
            "dockerImage": self._image(image),
            "resourcePerInstance": resources,
            "commands": [commands] if isinstance(commands, str) else list(commands),
            **more,
        }
        self.spec.setdefault("taskRoles", {})[name] = role
        return self

    def resize(
        self,
        role: str | None = None,
        *,
        image: str | None = None,
        gpu: int | None = None,
        cpu: int | None = None,
        mem: int | None = None,
        instances: int | None = None,
        ports: Mapping[str, int] | None = None,
    ) -> Self:
        """Change what the tasks of one role, or of all, get; what is left out stays as it is."""
        wanted = {"gpu": gpu, "cpu": cpu, "memoryMB": mem}
        changed = {key: value for key, value in wanted.items() if value is not None}
        for found in [self._role(role)] if role else list(self.spec["taskRoles"].values()):
            resources = found.setdefault("resourcePerInstance", {})
            resources.update(changed)
            if ports:
                resources["ports"] = {**(resources.get("ports") or {}), **ports}
            if instances is not None:
                found["instances"] = instances
            if image:
                (self.spec.get("extras") or {}).get("openpaisdk", {}).pop("image", None)
                found["dockerImage"] = self._image(image)
        return self

    def command(self, role: str, *commands: str) -> Self:
        """Add commands to a task role."""
        self._role(role)["commands"].extend(commands)
        return self

    def parameter(self, name: str, value: Any) -> Self:
        """Set what `<% $parameters.name %>` in commands stands for."""
        self.spec.setdefault("parameters", {})[name] = value
        return self

    def secret(self, name: str, value: str) -> Self:
        """Set what `<% $secrets.name %>` in commands stands for; it is never shown again."""
        if not isinstance(self.spec.get("secrets"), dict):
            # A cluster gives only a mask back.
            self.spec["secrets"] = {}
        self.spec["secrets"][name] = value
        return self

    def prerequisite(self, type: str, name: str, uri: str | list[str] | None = None, **more: Any) -> Self:
        """Add a docker image, script, data or output; one of the same type and name is replaced."""
        entry = {"type": type, "name": name, **({"uri": uri} if uri is not None else {}), **more}
        known = self.spec.setdefault("prerequisites", [])
        known[:] = [old for old in known if (old.get("type"), old.get("name")) != (type, name)] + [entry]
        return self

    def deployment(
        self, name: str, role: str, pre: str | Sequence[str] = (), post: str | Sequence[str] = ()
    ) -> Self:
        """Add commands before and after a role's own, and make this deployment the default one."""
        known = self.spec.setdefault("deployments", [])
        found = next((entry for entry in known if entry.get("name") == name), None)
        if found is None:
            found = {"name": name, "taskRoles": {}}
            known.append(found)
        lines = {"preCommands": _lines(pre), "postCommands": _lines(post)}
        found["taskRoles"][role] = {key: value for key, value in lines.items() if value}
        self.spec.setdefault("defaults", {})["deployment"] = name
        return self

    def extra(self, name: str, value: Any) -> Self:
        """Set one of the protocol's extras."""
        self.spec.setdefault("extras", {})[name] = value
        return self

    def save_outputs(self, *patterns: str) -> Self:
        """Keep files of the working folder as outputs when a task ends, however it ends: `models/*.pt`."""
        known = self._ours().setdefault("save", [])
        known += [pattern for pattern in map(output_pattern, patterns) if pattern not in known]
        return self

    def use_callbacks(self, wanted: bool = True) -> Self:
        """Leave the deployment's commands to the program, whose start and end callbacks may replace them."""
        self._ours()["callbacks"] = wanted
        return self

    def use_runtime(self, wanted: bool = True) -> Self:
        """Whether `openpai.runtime` can be imported inside the job; it can unless told otherwise."""
        self._ours()["runtime"] = wanted
        return self

    def _ours(self) -> dict[str, Any]:
        found: dict[str, Any] = self.spec.setdefault("extras", {}).setdefault("openpaisdk", {})
        return found

    def set(self, assignment: str) -> Self:
        """Change one value: `job.set("taskRoles.worker.instances=4")`."""
        from openpaisdk.protocol import set_value

        set_value(self.spec, assignment)
        return self

    def _image(self, uri: str | None) -> str:
        """The name of the docker image prerequisite with this address, added when it is new."""
        wanted = uri or default("image") or DEFAULT_IMAGE
        if wanted == DEFAULT_IMAGE and not uri:
            self._ours()["image"] = "default"
        images = [entry for entry in self.spec.get("prerequisites", ()) if entry.get("type") == "dockerimage"]
        for entry in images:
            if entry.get("uri") == wanted:
                return str(entry["name"])
        name = f"image{len(images) + 1}" if images else "image"
        self.prerequisite("dockerimage", name, wanted)
        return name

    def _role(self, name: str) -> dict[str, Any]:
        from openpaisdk.errors import NotFoundError

        roles: dict[str, Any] = self.spec.get("taskRoles") or {}
        if name not in roles:
            raise NotFoundError(
                f"job {self.name} has no task role `{name}`", hint=f"it has: {', '.join(roles) or 'none yet'}"
            )
        found: dict[str, Any] = roles[name]
        return found

    def check(self) -> list[Problem]:
        """Everything that is wrong with it, with line and column where it came from a file."""
        from openpaisdk.protocol import check

        return check(self._document if self._document is not None else self.spec)

    def cautions(self) -> list[Problem]:
        """What is allowed but hardly meant, such as a reference to a parameter that is not there."""
        from openpaisdk.protocol import cautions

        return cautions(self._document if self._document is not None else self.spec)

    def as_dict(self) -> dict[str, Any]:
        """The spec itself, in the words of protocol v2."""
        return self.spec

    def to_yaml(self) -> str:
        """The spec as a job file."""
        from openpaisdk.protocol import dump

        return dump(self.spec, "yaml")

    def to_json(self) -> str:
        """The spec as JSON."""
        from openpaisdk.protocol import dump

        return dump(self.spec, "json")


def default(name: str) -> Any:
    """The value in force for a default such as `image`, or None."""
    from openpaisdk.config import setting

    return setting(name)


def _whole(name: str, given: int | None, otherwise: int) -> int:
    value = default(name) if given is None else given
    if value is None or value == "":
        return otherwise
    try:
        return int(value)
    except (TypeError, ValueError):
        from openpaisdk.errors import UsageError

        raise UsageError(f"{name}: expected a whole number, got {value!r}") from None


def output_pattern(pattern: str) -> str:
    """The pattern itself, when it stays in the working folder of a task."""
    if not pattern.strip() or pattern.startswith("/") or ".." in pattern.split("/") or "\0" in pattern:
        from openpaisdk.errors import UsageError

        raise UsageError(
            f"--save {pattern!r}: outputs are saved from the working folder of a task",
            hint="write a name or pattern below it, such as 'models/*.pt', or copy the files there",
        )
    return pattern.removeprefix("./")


def _lines(commands: str | Sequence[str]) -> list[str]:
    return [commands] if isinstance(commands, str) else list(commands)

"""A job for a cluster that knows nothing of us: its commands inside a script that brings code and runtime.

Pure rendering. What is long (runtime, code) is one parameter of the job, however many task roles use it; the
commands themselves stay readable in the job, and the cluster fills in their references as ever.
"""

from __future__ import annotations

import json

from openpaisdk.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Spec = Mapping[str, Any]

KEY = "openpaisdk"
SECRET = "openpaisdk_workspace"  # noqa: S105 - the name of one
HOLD_ON = "trap 'trap - TERM; wait; kill -TERM $$' TERM"

_BEGIN = """\
# openpaisdk {version}: brings the code, runs the commands below and keeps their outputs.
opai_dir=$(mktemp -d "${{TMPDIR:-/tmp}}/openpai-XXXXXX")
cat > "$opai_dir/config.json" <<'{end}'
{config}
{end}"""

_FILE = """\
cat > "$opai_dir/{name}" <<'{end}'
<% $parameters.openpaisdk.{key} %>
{end}"""

_RUN = """\
if command -v python3 >/dev/null && python3 - "$opai_dir" <<'{end}'
import base64, sys, zlib
if sys.version_info < (3, 6):
    sys.exit(1)
folder = sys.argv[1]
with open(folder + "/runtime.b64", "rb") as packed, open(folder + "/runtime.zip", "wb") as archive:
    archive.write(zlib.decompress(base64.b64decode(packed.read())))
{end}
then
    export PYTHONPATH="$opai_dir/runtime.zip${{PYTHONPATH:+:$PYTHONPATH}}"
    exec python3 -m openpai.runtime.task_run "$opai_dir"
fi
echo 'openpaisdk: no python3 (3.6 or newer) in this image: no runtime, and outputs are not saved' >&2"""

_BARE = """\
rm -f "$opai_dir/config.json"
mkdir -p "$opai_dir/code" "$opai_dir/output"
export PAI_SDK_JOB_WORKSPACE="$opai_dir" PAI_SDK_TASK_DIR="$opai_dir"
export PAI_SDK_JOB_OUTPUT_DIR="$opai_dir/output"
{code}exec bash -euo pipefail "$opai_dir/user.sh\""""

_UNPACK = """\
cd "$opai_dir/code"
base64 -d "$opai_dir/code.b64" | {packing} -d | tar -xf -
"""
_CANNOT_FETCH = """\
echo 'openpaisdk: error: the code is in the workspace, and fetching it needs python3 in the image' >&2
exit 126
"""


def wrap(spec: Spec, *, runtime: str, workspace: Mapping[str, Any] | None) -> dict[str, Any]:
    """The spec to send instead. `runtime` is empty for none; `workspace` has address, path and login."""
    ours = dict((spec.get("extras") or {}).get(KEY) or {})
    code = dict(ours.pop("code", None) or {})
    save, callbacks = ours.pop("save", None) or [], ours.pop("callbacks", None) is True
    found: dict[str, Any] = json.loads(json.dumps(spec))
    parts = {"runtime": runtime, "code": code.pop("text", "")}
    kept = {key: text for key, text in parts.items() if text}
    if kept:
        found["parameters"] = {**(found.get("parameters") or {}), KEY: kept}
    config: dict[str, Any] = {"save": save, "apart": _tasks(spec) > 1, "kind": ours.get("kind") or ""}
    if code or parts["code"]:
        config["code"] = code if code.get("workspace") else {"text": True}
    if workspace:
        token = workspace.get("token")
        if token:
            found["secrets"] = {**(found.get("secrets") or {}), SECRET: token}
        config["workspace"] = {**workspace, "token": f"<% $secrets.{SECRET} %>" if token else ""}
    for name, role in found["taskRoles"].items():
        pre, post = _deployed(spec, name)
        around = ([], []) if callbacks else (pre, post)
        lines = [HOLD_ON, *around[0], *role["commands"], *around[1]]
        beside = {"pre.sh": pre, "post.sh": post} if callbacks else {}
        role["commands"] = _commands(lines, beside, config, kept, code.get("packing", "gzip"))
    (found.get("defaults") or {}).pop("deployment", None)
    told = {"version": __version__, "code": code, "save": save}
    found.setdefault("extras", {})[KEY] = {**ours, "wrapped": told}
    return found


def is_wrapped(spec: Spec) -> bool:
    """Whether the spec came out of `wrap`, perhaps of an earlier submission."""
    return "wrapped" in ((spec.get("extras") or {}).get(KEY) or {})


def _commands(
    lines: list[str], beside: Mapping[str, list[str]], config: Mapping[str, Any], kept: Spec, packing: str
) -> list[str]:
    from hashlib import sha256

    # No line of the commands may look like the end of the text that they are.
    end = "OPAI_" + sha256("\n".join(lines).encode()).hexdigest()[:12]
    begin = [_BEGIN.format(version=__version__, config=json.dumps(config), end=end)]
    begin += [_FILE.format(name=f"{key}.b64", key=key, end=end) for key in kept]
    for name, commands in beside.items():
        if commands:
            text = "\n".join(command.strip() for command in commands)
            begin.append(f"cat > \"$opai_dir/{name}\" <<'{end}'\n{text}\n{end}")
    begin.append(f"cat > \"$opai_dir/user.sh\" <<'{end}'")
    code = ""
    if "code" in kept:
        code = _UNPACK.format(packing=packing)
    elif "code" in config:
        code = _CANNOT_FETCH
    last = [end, *([_RUN.format(end=end)] if "runtime" in kept else []), _BARE.format(code=code)]
    return ["\n".join(begin), *lines, "\n".join(last)]


def _deployed(spec: Spec, role: str) -> tuple[list[str], list[str]]:
    wanted = (spec.get("defaults") or {}).get("deployment")
    for deployment in spec.get("deployments") or ():
        if wanted is not None and deployment.get("name") == wanted:
            found = deployment["taskRoles"].get(role) or {}
            return list(found.get("preCommands") or ()), list(found.get("postCommands") or ())
    return [], []


def _tasks(spec: Spec) -> int:
    return sum(int(role.get("instances") or 1) for role in spec["taskRoles"].values())

"""What a task runs: its entry script, and the deployment's commands apart where the program calls them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from openpaisdk.protocol import entry_script

# Without it a shell dies of SIGTERM at once and takes its program along; so it waits until that has written
# its checkpoint, and then dies of the same signal.
HOLD_ON = "trap 'trap - TERM; wait; kill -TERM $$' TERM"


class Scripts(NamedTuple):
    """The entry script, and what goes beside it as pre.sh and post.sh; empty for nothing to run."""

    entry: str
    pre: str = ""
    post: str = ""


def scripts_of(spec: Mapping[str, Any], role: str, *, callbacks: bool) -> Scripts:
    """The scripts of a task role; with `callbacks` the runtime runs the deployment's commands."""
    secrets = spec.get("secrets") or {}
    if not callbacks:
        return Scripts(f"{HOLD_ON}\n{entry_script(spec, role, secrets=secrets)}")
    around = deployed(spec, role)
    pre, post = (_rendered(spec, role, around.get(key) or ()) for key in ("preCommands", "postCommands"))
    bare = {**spec, "defaults": {**(spec.get("defaults") or {}), "deployment": None}}
    return Scripts(f"{HOLD_ON}\n{entry_script(bare, role, secrets=secrets)}", pre, post)


def deployed(spec: Mapping[str, Any], role: str) -> Mapping[str, Any]:
    """What the default deployment has for a role."""
    wanted = (spec.get("defaults") or {}).get("deployment")
    for deployment in spec.get("deployments") or ():
        if wanted is not None and deployment["name"] == wanted:
            found: Mapping[str, Any] = deployment["taskRoles"].get(role) or {}
            return found
    return {}


def _rendered(spec: Mapping[str, Any], role: str, commands: Any) -> str:
    if not commands:
        return ""
    alone = {**spec["taskRoles"][role], "commands": list(commands)}
    bare = {**spec, "taskRoles": {role: alone}, "defaults": {}}
    return entry_script(bare, role, secrets=spec.get("secrets") or {}) + "\n"

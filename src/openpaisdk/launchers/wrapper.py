"""Pure rendering: the sh wrapper around a task, its variables, and the command that enters a running one.

The wrapper is the only thing of ours that stays with a task, so it is plain POSIX sh (a few hundred kB,
in any image) and starts no other program.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from shlex import quote

from openpaisdk.errors import UsageError

MARKER = "OPAI_TASK_FOLDER"
BASH_PATHS = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash")
CONTAINER_OOM_COUNTERS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_WRAPPER = """\
#!/bin/sh
# Runs one task attempt once and records how it ended, whether or not a server is there to see it.
trap : HUP INT QUIT TERM
cd {folder} || exit 75
exec </dev/null >>runtime.log 2>&1
set -C
{{ true > started.json; }} 2>/dev/null || exit 0
set +C
stat= boot=
{{ read -r stat < /proc/$$/stat && read -r boot < /proc/sys/kernel/random/boot_id; }} 2>/dev/null
set -- $stat
printf '{{"pid":%d,"ticks":%d,"boot":"%s"}}\\n' $$ "${{22:-0}}" "$boot" > started.json
(
{limits}    exec >>stdout 2>>stderr
    . {folder}/env.sh
    cd {workdir} || exit 1
    for shell in {shells} ''; do [ -x "$shell" ] && break; done
    if [ -e {folder}/stop ]; then exit 143; fi
    if [ -n "$shell" ]; then exec "$shell" -euo pipefail {folder}/script.sh; fi
    exec /bin/sh -eu {folder}/script.sh
)
code=$? oom=0
if [ $code -ne 0 ]; then
    for counter in {counters}; do
        [ -r "$counter" ] || continue
        while read -r name count; do
            if [ "$name" = oom_kill ]; then oom=$count; fi
        done < "$counter"
    done
fi
# Over the reserved bytes and in one write, so it is whole or absent and works on a full disk.
printf '%-31s\\n' "$code $oom" 1<> exit
exit $code
"""

_ENTER = '{join}. "$0"/env.sh; cd {workdir} || exit 1; exec "$@"'


def render_wrapper(
    folder: str,
    workdir: str,
    *,
    shells: Sequence[str] = BASH_PATHS,
    cgroups: Sequence[str] = (),
    data_limit_kb: int | None = None,
    oom_counters: Sequence[str] = (),
) -> bytes:
    """The text of run.sh. `cgroups` are joined and `data_limit_kb` set by the script's process only, so
    that the wrapper itself is never killed for the task's memory."""
    lines = [f"    echo 0 > {quote(group + '/cgroup.procs')}\n" for group in cgroups]
    if data_limit_kb is not None:
        lines.append(f"    ulimit -d {data_limit_kb}\n")
    text = _WRAPPER.format(
        folder=quote(folder),
        workdir=quote(workdir),
        limits="".join(lines),
        shells=" ".join(quote(shell) for shell in shells),
        counters=" ".join(quote(counter) for counter in oom_counters) or "''",
    )
    return as_bytes(text)


def render_env(env: Mapping[str, str], prepend: Mapping[str, str] | None = None) -> bytes:
    """The text of env.sh. Names that no shell can hold are left out: they could not reach the script
    anyway. Values in `prepend` go before those that the variables already have, with a colon."""
    lines = []
    for name, value in env.items():
        if "\0" in value:
            raise UsageError(
                f"environment variable {name}: its value holds a NUL character", hint="encode binary values"
            )
        if _NAME.fullmatch(name):
            lines.append(f"export {name}={quote(value)}\n")
    for name, value in (prepend or {}).items():
        lines.append(f'export {name}={quote(value)}"${{{name}:+:${name}}}"\n')
    return as_bytes("".join(lines))


def as_bytes(text: str) -> bytes:
    """Bytes that came in through the environment unchanged; what no encoding can hold becomes a question
    mark."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def task_environment(
    env: Mapping[str, str], *, folder: str, workdir: str, gpus: Sequence[int]
) -> dict[str, str]:
    """The task's variables with those only a launcher knows: GPUs as the task sees them, folder, working
    folder."""
    return {
        "PAI_WORK_DIR": workdir,
        **env,
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": ",".join(str(gpu) for gpu in gpus),
        MARKER: folder,
    }


def inherited_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What a task on this machine takes over from the server: all but what is about the server itself or
    about a job that the server may run in."""
    ours = ("OPAI_", "OPENPAI_", "PAI_", "FC_", "NOTIFY_SOCKET", "LISTEN_", "INVOCATION_ID", "BASH_ENV")
    return {name: value for name, value in environ.items() if not name.startswith(ours)}


def enter_argv(
    folder: str, workdir: str, command: Sequence[str], *, cgroups: Sequence[str] = ()
) -> list[str]:
    """The command line that runs `command` with the variables and folder of a task, and under its limits."""
    joins = "".join(f"echo 0 2>/dev/null > {quote(group + '/cgroup.procs')}; " for group in cgroups)
    text = _ENTER.format(join=joins, workdir=quote(workdir))
    shell = ["/bin/sh", "-c", "if command -v bash >/dev/null; then exec bash; fi; exec sh"]
    return ["/bin/sh", "-c", text, folder, *(command or shell)]

"""From the words a person typed to the lines and the name of a job."""

from __future__ import annotations

import shlex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# Words that only begin a command: the job is named after what comes then.
_STARTERS = (
    "python",
    "python3",
    "bash",
    "sh",
    "env",
    "time",
    "torchrun",
    "mpirun",
    "accelerate",
    "deepspeed",
    "uv",
    "sudo",
    "nohup",
    "exec",
    "export",
    "set",
    "cd",
    "for",
    "while",
    "if",
)


def command_text(command: str | Sequence[str]) -> str:
    """One string is shell text as it stands; several words are quoted so that they arrive as typed."""
    words = [command] if isinstance(command, str) else command
    text = words[0] if len(words) == 1 else shlex.join(words)
    if not text.strip():
        from openpaisdk.errors import UsageError

        raise UsageError(
            f"the command {text!r} is empty", hint="give the words to run, such as python train.py"
        )
    return text


def name_stem(command: str) -> str:
    """What a job is called after its command: `python -u train.py --lr 1` is a `train`."""
    words = [word for word in command.split() if not word.startswith("-") and "=" not in word]
    for word in words:
        stem = word.strip("'\"").replace("\\", "/").rstrip("/").rpartition("/")[2]
        if stem in _STARTERS:
            continue
        stem = stem.partition(".")[0] or stem
        if any(letter.isalpha() for letter in stem):
            return stem[:40]
    return words[0].rpartition("/")[2][:40] if words else "job"


def clone_stem(name: str) -> str:
    """The name without the random end that an earlier clone gave it."""
    stem, mark, end = name.rpartition("-")
    made = mark and len(end) == 8 and all(letter in "0123456789abcdef" for letter in end)
    return stem if made else name


def exports(env: Mapping[str, str]) -> list[str]:
    """Shell lines that set environment variables for the commands after them."""
    return [f"export {name}={shlex.quote(str(value))}" for name, value in env.items()]


# Beside the program and not in anybody's environment. Variables of pip that would refuse that are overruled.
_INSTALL = """\
command -v python3 >/dev/null || {{ echo 'error: packages need python3 in the image' >&2; exit 126; }}
PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0 PIP_ROOT_USER_ACTION=ignore \
python3 -m pip install --quiet --disable-pip-version-check --no-input \
--target "$PWD/.packages" {packages} || {{ echo 'error: cannot install with pip: '{names} >&2; exit 126; }}
export PYTHONPATH="$PWD/.packages${{PYTHONPATH:+:$PYTHONPATH}}" PATH="$PWD/.packages/bin:$PATH\""""


def install_lines(packages: Iterable[str]) -> list[str]:
    """The shell lines that install Python packages for the commands after them, or none."""
    wanted = list(packages)
    if not wanted:
        return []
    return [_INSTALL.format(packages=shlex.join(wanted), names=shlex.quote(" ".join(wanted)))]

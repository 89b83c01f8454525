"""How a server is told to run: the options of `python -m openpaisdk.server`."""

from __future__ import annotations

import argparse
import ipaddress
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from openpaisdk.errors import ConfigError, UsageError

GRACE_SECONDS = 30.0


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is decided at the start and holds until the end."""

    data_dir: Path
    host: str = "127.0.0.1"
    port: int = 0
    local: bool = False
    local_user: str = ""
    tls_cert: Path | None = None
    tls_key: Path | None = None
    insecure: bool = False
    launcher: str = "auto"
    fake_gpus: int = 0
    state_file: Path | None = None
    ready_fd: int | None = None
    own_jobs_only: bool = False
    rate_limits: str | None = None
    virtual_clusters: dict[str, float] = {}
    quotas: dict[str, dict[str, int]] = {}
    file_quota_mb: int = 0
    name: str = "openpaisdk"

    @property
    def loopback(self) -> bool:
        return is_loopback(self.host)

    @property
    def scheme(self) -> str:
        return "https" if self.tls_cert else "http"

    @property
    def database(self) -> Path:
        return self.data_dir / "server.db"

    @property
    def files(self) -> Path:
        """The file area that people see through WebHDFS."""
        return self.data_dir / "files"

    @property
    def tasks(self) -> Path:
        return self.data_dir / "tasks"

    def job_folder(self, user: str, job: str) -> Path:
        """The job's own folder in its owner's home: `code` and `output` are below it."""
        return self.files / "user" / user / "jobs" / job

    def task_folder(self, job_id: int, attempt: int, role: str, index: int, task_attempt: int) -> Path:
        """Where a launcher keeps the files of one task attempt."""
        return self.tasks / str(job_id) / str(attempt) / f"{role}-{index}-{task_attempt}"

    def require_safe(self) -> None:
        """Refuse to listen where strangers could listen in."""
        if bool(self.tls_cert) != bool(self.tls_key):
            raise ConfigError("--tls-cert and --tls-key go together", hint="give both, or neither")
        if not self.loopback and not self.tls_cert and not self.insecure:
            raise ConfigError(
                f"refusing to listen on {self.host} without TLS: passwords and tokens would travel in clear",
                hint="give --tls-cert and --tls-key, or --insecure behind a proxy that does TLS",
            )


def is_loopback(host: str) -> bool:
    """True for addresses that only this machine can reach."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def parse(argv: Sequence[str]) -> Settings:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m openpaisdk.server", description=__doc__)
    parser.add_argument("--local", action="store_true", help="the cluster of one person on this machine")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, help="default 9186, or any free one with --local")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--tls-cert", type=Path)
    parser.add_argument("--tls-key", type=Path)
    parser.add_argument("--insecure", action="store_true", help="listen beyond loopback without TLS")
    parser.add_argument("--launcher", default="auto", help="auto, process, container, ...")
    parser.add_argument("--fake-gpus", type=int, default=0, metavar="N", help="pretend to have N GPUs")
    parser.add_argument("--state-file", type=Path, help="where to write pid, address and token (0600)")
    parser.add_argument("--ready-fd", type=int, help="write one line of JSON there when requests are served")
    parser.add_argument("--own-jobs-only", action="store_true", help="people see only their own jobs")
    parser.add_argument("--rate-limits", help="for example api=600,list=120,submit=3600, or off")
    parser.add_argument(
        "--virtual-cluster",
        action="append",
        default=[],
        metavar="NAME=SHARE",
        help="share from 0 to 1; repeat",
    )
    parser.add_argument(
        "--quota", action="append", default=[], metavar="USER=gpu:2,cpu:8", help="USER * is everybody; repeat"
    )
    parser.add_argument(
        "--file-quota-mb", type=int, default=0, metavar="MB", help="of each home; 0: no limit"
    )
    found = parser.parse_args(argv)
    _require_range("--port", found.port or 0, 65_535)
    _require_range("--fake-gpus", found.fake_gpus, 1024)
    _require_range("--file-quota-mb", found.file_quota_mb, 2**40)
    data_dir = found.data_dir
    if data_dir is None:
        from openpaisdk.config import home

        data_dir = home() / ("local" if found.local else "server") / "data"
    port = found.port if found.port is not None else (0 if found.local else 9186)
    return Settings(
        data_dir=data_dir.expanduser().resolve(),
        host=found.host,
        port=port,
        local=found.local,
        local_user=_login_name() if found.local else "",
        tls_cert=found.tls_cert,
        tls_key=found.tls_key,
        insecure=found.insecure,
        launcher=found.launcher,
        fake_gpus=found.fake_gpus,
        state_file=found.state_file,
        ready_fd=found.ready_fd,
        own_jobs_only=found.own_jobs_only,
        rate_limits=found.rate_limits,
        virtual_clusters=_shares(found.virtual_cluster),
        quotas=dict(_quota(text) for text in found.quota),
        file_quota_mb=found.file_quota_mb,
    )


def _require_range(option: str, number: int, most: int) -> None:
    if not 0 <= number <= most:
        raise UsageError(f"{option} {number}: expected a number from 0 to {most}")


def _login_name() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without an entry in the password file
        return "user"


def _share(text: str) -> tuple[str, float]:
    name, _, share = text.partition("=")
    try:
        value = float(share or "1")
    except ValueError:
        value = -1.0
    if not re.fullmatch(r"[A-Za-z0-9_]+", name) or not 0 <= value <= 1:
        raise UsageError(
            f"--virtual-cluster {text}: expected NAME=SHARE, the name of letters, digits and '_', "
            "the share from 0 to 1",
            hint="for example --virtual-cluster research=0.5",
        )
    return name, value


def _shares(texts: Sequence[str]) -> dict[str, float]:
    found = dict(_share(text) for text in texts)
    whole = sum(found.values())
    if whole > 1 + 1e-9:
        raise UsageError(
            f"--virtual-cluster: the shares add up to {whole:g}, which nobody could guarantee",
            hint="give at most 1 in all; what is left over is the share of `default`",
        )
    return found


def _quota(text: str) -> tuple[str, dict[str, int]]:
    user, _, parts = text.partition("=")
    limits: dict[str, int] = {}
    for part in filter(None, parts.split(",")):
        name, _, number = part.partition(":")
        key = {"memory": "memory_mb"}.get(name, name)
        if key not in ("cpu", "memory_mb", "gpu", "jobs") or not number.isdigit():
            raise UsageError(
                f"--quota {text}: {part!r} is not a limit", hint="write cpu:N, memory_mb:N, gpu:N or jobs:N"
            )
        limits[key] = int(number)
    if not user or not limits:
        raise UsageError(
            f"--quota {text}: expected USER=LIMITS", hint="for example --quota 'alice=gpu:2,jobs:10'"
        )
    return user, limits

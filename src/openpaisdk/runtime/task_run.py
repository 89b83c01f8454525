"""Runs the commands of a task on clusters that know nothing of us: code in, signals through, outputs out.

`python3 -m openpai.runtime.task_run FOLDER`, where FOLDER has config.json, user.sh (the commands) and, for
code that travelled in the job text, code.b64. Ends with the exit code of the commands.
"""

import base64
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import threading

from .hdfs import Hdfs, StorageError
from .matching import NO_FILE, matches, unmatched
from .place import Place
from .remote import CHECKPOINTS, Mirror, fetch_code, files_below, require_inside, say, send_files

NO_CODE, NOT_SAVED = 75, 74
SAVING_SECONDS = 10.0
PASSED_ON = ("SIGTERM", "SIGINT", "SIGHUP")


class Task:
    """One task attempt: prepared, run, and what it left saved."""

    def __init__(self, folder: str, environ: "dict[str, str]") -> None:
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            self.config = json.load(file)
        # It may hold the token of the workspace, which is not the program's business.
        os.unlink(file.name)
        self.folder = folder
        self.output = os.path.join(folder, "output")
        self.environ = environ
        self.place = Place(environ)
        self.hdfs, self.root = _workspace(self.config.get("workspace") or {})
        self.work = os.getcwd()
        self._child: "subprocess.Popen[bytes] | None" = None
        self._mirror: "Mirror | None" = None
        self._early: "list[int]" = []

    @property
    def _remote(self) -> str:
        return "{}/jobs/{}/output".format(self.root.rstrip("/"), self.place.job)

    def prepare(self) -> None:
        """Lay out the code, and find the last checkpoint of an earlier attempt."""
        os.makedirs(self.output, exist_ok=True)
        code = self.config.get("code") or {}
        if code:
            self.work = os.path.join(self.folder, "code")
            os.makedirs(self.work, exist_ok=True)
        if code.get("workspace") and self.hdfs:
            fetch_code(self.hdfs, self.root, code["workspace"], self.work)
        elif code:
            unpack(os.path.join(self.folder, "code.b64"), self.work)
        if self.hdfs:
            own = "{}/{}-{}".format(CHECKPOINTS, self.place.role, self.place.index)
            here = os.path.join(self.output, own)
            os.makedirs(here, exist_ok=True)
            self._mirror = Mirror(self.hdfs, here, self._remote + "/" + own)
            number = self._mirror.fetch()
            if number is not None:
                say("checkpoint {} of an earlier attempt is here".format(number))

    def run(self) -> int:
        """Run the commands in a session of their own, with signals passed on; their exit code."""
        shell = shutil.which("bash")
        argv = [shell, "-euo", "pipefail"] if shell else ["/bin/sh", "-eu"]
        variables = dict(
            self.environ,
            PAI_SDK_JOB_WORKSPACE=self.folder,
            PAI_SDK_JOB_OUTPUT_DIR=self.output,
            PAI_SDK_TASK_DIR=self.folder,
        )
        variables.setdefault("PAI_SDK_GRACE_SECONDS", "30")
        if self.config.get("kind"):
            variables["PAI_SDK_JOB_KIND"] = self.config["kind"]
        if self._mirror:
            self._mirror.start()
        script = os.path.join(self.folder, "user.sh")
        for name in PASSED_ON:
            signal.signal(getattr(signal, name), self._pass_on)
        self._child = subprocess.Popen(argv + [script], env=variables, cwd=self.work, start_new_session=True)
        for number in self._early:
            self._pass_on(number, None)
        code = self._child.wait()
        return code if code >= 0 else 128 - code

    def _pass_on(self, number: int, frame: object) -> None:
        """Some of the time that is left belongs to saving, so what does not end by itself is ended."""
        if self._child is None:
            self._early.append(number)
            return
        self._signal(number)
        grace = float(self.environ.get("PAI_SDK_GRACE_SECONDS", "30"))
        timer = threading.Timer(max(1.0, grace - SAVING_SECONDS), self._signal, [signal.SIGKILL])
        timer.daemon = True
        timer.start()

    def _signal(self, number: int) -> None:
        if self._child is not None and self._child.poll() is None:
            try:
                os.killpg(self._child.pid, number)
            except OSError:
                pass

    def save(self) -> "list[str]":
        """Send outputs to the workspace; in words what could not be sent."""
        for name in PASSED_ON:
            signal.signal(getattr(signal, name), signal.SIG_IGN)
        patterns = self.config.get("save") or []
        found, problems = matches(patterns, self.work)
        missed = [NO_FILE.format(pattern) for pattern in patterns]
        for problem in problems:
            if problem not in missed:
                say("not saved: " + problem)
        files = dict(files_below(self.output, CHECKPOINTS))
        apart = "{}-{}/".format(self.place.role, self.place.index) if self.config.get("apart") else ""
        files.update({apart + name: os.path.join(self.work, real) for name, real in found.items()})
        sys.stderr.write("".join(unmatched(patterns, problems)))
        if not self.hdfs:
            if files:
                say("{} outputs are lost: this cluster has no workspace storage".format(len(files)))
            return []
        unsent = self._mirror.finish() if self._mirror else []
        unsent += send_files(self.hdfs, files, self._remote)
        if files:
            say("{} of {} outputs saved".format(len(files) - len(unsent), len(files)))
        return unsent


def unpack(path: str, folder: str) -> None:
    """Make the files of a tar archive in base64."""
    with open(path, "rb") as file:
        archive = io.BytesIO(base64.b64decode(file.read()))
    with tarfile.open(fileobj=archive, mode="r:*") as members:
        for member in members:
            require_inside(member.name)
            # Newer versions of Python insist on being told how far an archive is trusted.
            trust = {"filter": "tar"} if hasattr(tarfile, "tar_filter") else {}
            members.extract(member, folder, **trust)  # type: ignore[arg-type]


def _workspace(config: "dict[str, object]") -> "tuple[Hdfs | None, str]":
    if not config.get("uri"):
        return None, ""
    user, token = (str(config.get(key) or "") for key in ("user", "token"))
    return Hdfs(str(config["uri"]), user, token, config.get("verify") is not False), str(config["path"])


def main(argv: "list[str]") -> int:
    task = Task(argv[0], dict(os.environ))
    try:
        task.prepare()
    except (StorageError, OSError, ValueError, tarfile.TarError) as error:
        say("error: the code or the checkpoint cannot be had: {}".format(error))
        return NO_CODE
    code = task.run()
    unsent = task.save()
    for problem in unsent[:5]:
        say("error: not saved: {}".format(problem))
    return code or (NOT_SAVED if unsent else 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

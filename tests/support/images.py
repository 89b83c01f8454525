"""Small container images for tests, made from this machine's busybox and Python; nothing is pulled."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

APPLETS = (
    "sh",
    "cat",
    "echo",
    "env",
    "false",
    "head",
    "id",
    "ls",
    "mkdir",
    "nc",
    "sleep",
    "test",
    "touch",
    "true",
)
FOLDERS = ("bin", "dev", "etc", "proc", "root", "sys", "tmp", "usr/bin")


def busybox_image() -> str:
    """The name of a local image with a static busybox as its only program."""
    program = shutil.which("busybox")
    assert program, "busybox is missing (the package is called busybox-static on Debian)"
    return _image("opai-test-busybox", Path(program).read_bytes(), lambda root: _lay_busybox(root, program))


def python_image() -> str:
    """The same with the Python that runs the tests, its standard library and the C libraries it needs."""
    program = os.path.realpath(sys.executable)
    busybox = shutil.which("busybox")
    assert busybox

    def lay(root: Path) -> None:
        _lay_busybox(root, busybox)
        _lay_python(root, program)

    return _image("opai-test-python", program.encode() + Path(busybox).read_bytes(), lay)


def _image(name: str, content: bytes, lay: Callable[[Path], None]) -> str:
    """Imports what `lay` puts into a folder, unless the engine has it already."""
    image = f"localhost/{name}:{hashlib.sha256(content).hexdigest()[:12]}"
    if subprocess.run(["podman", "image", "exists", image], check=False).returncode == 0:
        return image
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "root")
        for inside in FOLDERS:
            (root / inside).mkdir(parents=True, exist_ok=True)
        lay(root)
        archive = Path(folder, "root.tar")
        with tarfile.open(archive, "w") as packed:
            packed.add(root, arcname=".")
        subprocess.run(
            ["podman", "import", "--quiet", str(archive), image], check=True, stdout=subprocess.DEVNULL
        )
    return image


def _lay_busybox(root: Path, program: str) -> None:
    shutil.copy(program, root / "bin" / "busybox")
    for applet in APPLETS:
        (root / "bin" / applet).symlink_to("busybox")


def _lay_python(root: Path, program: str) -> None:
    library = Path(sysconfig.get_path("stdlib"))
    target = root / str(library).lstrip("/")
    leave = shutil.ignore_patterns(
        "test", "tests", "site-packages", "dist-packages", "__pycache__", "idlelib", "*.a"
    )
    shutil.copytree(library, target, ignore=leave, symlinks=True)
    inside = root / program.lstrip("/")
    inside.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(program, inside)
    (root / "usr/bin/python3").unlink(missing_ok=True)
    (root / "usr/bin/python3").symlink_to(program)
    for binary in [inside, *target.rglob("*.so")]:
        for needed in _libraries(binary):
            place = root / needed.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.exists():
                shutil.copy(needed, place)


def _libraries(binary: Path) -> list[str]:
    listed = subprocess.run(["ldd", str(binary)], capture_output=True, text=True, check=False).stdout
    return [word for line in listed.splitlines() for word in line.split() if word.startswith("/")]

"""Signals for programs inside running tasks: only to the process that asked for them."""

from __future__ import annotations

import asyncio
import os
import signal

import psutil

from openpaisdk.launchers import Launcher
from openpaisdk.launchers.folder import TaskFolder, read_plain
from openpaisdk.launchers.wrapper import MARKER

REGISTRATION = "checkpoint.pid"
PATIENCE = 30.0


def registered(folder: str) -> int | None:
    """The process of a task that listens for `checkpoint`, as the runtime noted it."""
    text = read_plain(f"{folder}/{REGISTRATION}", limit=32).strip()
    return int(text) if text.isdigit() and int(text) > 1 else None


async def deliver(launcher: Launcher, handle: str, folder: str) -> bool:
    """Ask the listening process of a task for a checkpoint; False where none listens."""
    pid = registered(folder)
    if pid is None:
        return False
    intent = TaskFolder(folder).intent()
    if intent is not None and intent.container:
        # Process numbers count from 1 inside, so nothing but this container can be hit.
        return await _run(launcher, handle, ["/bin/sh", "-c", f"kill -USR1 {pid}"])
    if not await asyncio.to_thread(_belongs, pid, folder):
        return False
    try:
        os.kill(pid, signal.SIGUSR1)
    except ProcessLookupError:
        return False
    return True


def _belongs(pid: int, folder: str) -> bool:
    """Whether a process is one of the task: a number that a task wrote itself may be anybody's."""
    try:
        return psutil.Process(pid).environ().get(MARKER) == folder
    except psutil.Error:
        return False


async def _run(launcher: Launcher, handle: str, command: list[str]) -> bool:
    plan = launcher.exec_command(handle, command)
    nowhere = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *plan.argv, env=plan.env, cwd=plan.cwd, stdin=nowhere, stdout=nowhere, stderr=nowhere
    )
    try:
        return await asyncio.wait_for(process.wait(), PATIENCE) == 0
    except asyncio.TimeoutError:
        process.kill()
        await process.wait()
        return False

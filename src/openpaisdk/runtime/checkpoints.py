"""Checkpoints that a retried or preempted task finds again: published whole or not at all."""

import os


class Checkpoints:
    """Numbered copies below one folder per task (`<folder>/000001` ...), of which the newest few are kept."""

    def __init__(self, folder: str, keep: int = 2) -> None:
        self.folder = folder
        self.keep = max(1, keep)

    def publish(self, path: str) -> str:
        """Copies a file or folder and makes it the last checkpoint; a crash leaves the one before."""
        import shutil
        import tempfile

        if not os.path.exists(path):
            raise FileNotFoundError("no checkpoint to publish: {} is not there".format(path))
        os.makedirs(self.folder, exist_ok=True)
        staging = tempfile.mkdtemp(prefix=".staging-", dir=self.folder)
        try:
            inside = os.path.join(staging, os.path.basename(os.path.normpath(path)))
            if os.path.isdir(path):
                shutil.copytree(path, inside)
            else:
                shutil.copy2(path, inside)
                _flush(inside)
            target = os.path.join(self.folder, "{:06d}".format(self._last_number() + 1))
            os.rename(staging, target)
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            raise
        self._prune()
        return os.path.join(target, os.path.basename(inside))

    def last(self) -> "str | None":
        """The file or folder published last, or nothing."""
        for number in reversed(self._numbers()):
            folder = os.path.join(self.folder, number)
            names = sorted(os.listdir(folder))
            if names:
                return os.path.join(folder, names[0])
        return None

    def _numbers(self) -> "list[str]":
        try:
            return sorted(name for name in os.listdir(self.folder) if name.isdigit())
        except FileNotFoundError:
            return []

    def _last_number(self) -> int:
        numbers = self._numbers()
        return int(numbers[-1]) if numbers else 0

    def _prune(self) -> None:
        import shutil

        for number in self._numbers()[: -self.keep]:
            shutil.rmtree(os.path.join(self.folder, number), ignore_errors=True)


def _flush(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

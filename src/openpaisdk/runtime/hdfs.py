"""The few operations of WebHDFS that a task needs to fetch its code and keep its outputs."""

import json
import os
import shutil
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TRIES = 4


class StorageError(Exception):
    """The storage refused, or cannot be reached."""


class Hdfs:
    """Files behind a WebHDFS address, as a user or with a delegation token. Calls block."""

    def __init__(
        self, uri: str, user: str = "", token: str = "", verify: bool = True, pause: float = 1.0
    ) -> None:
        self.uri = uri.rstrip("/")
        self._login = {"delegation": token} if token else {"user.name": user} if user else {}
        self._pause = pause
        context = None if verify else ssl._create_unverified_context()
        self._opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))

    def read(self, path: str, target: str) -> None:
        """Copy a file here; it has its name only when it is whole."""

        def fetch() -> None:
            with self._send("GET", "OPEN", path) as answer, open(target + ".part", "wb") as file:
                shutil.copyfileobj(answer, file, 1 << 20)
            os.replace(target + ".part", target)

        self._try(path, fetch)

    def text(self, path: str) -> bytes:
        """The contents of a small file."""

        def fetch() -> bytes:
            with self._send("GET", "OPEN", path) as answer:
                return bytes(answer.read())

        return self._try(path, fetch)  # type: ignore[no-any-return]

    def names(self, path: str) -> "dict[str, bool]":
        """What a folder holds, and whether each is a folder; nothing where there is no such folder."""

        def fetch() -> "dict[str, bool]":
            try:
                with self._send("GET", "LISTSTATUS", path) as answer:
                    found = json.loads(answer.read().decode("utf-8"))["FileStatuses"]["FileStatus"]
            except urllib.error.HTTPError as error:
                if error.code == 404:
                    error.close()
                    return {}
                raise
            return {item["pathSuffix"]: item["type"] == "DIRECTORY" for item in found}

        return self._try(path, fetch)  # type: ignore[no-any-return]

    def write(self, source: str, path: str) -> None:
        """Copy a file there, over one of the same name; it has its name only when it is whole."""
        folder, _, name = path.rpartition("/")
        part = "{}/.{}.part".format(folder, name[:180])

        def send() -> None:
            first = self._send("PUT", "CREATE", part, overwrite="true")
            with first:
                place = first.headers.get("Location")
            with open(source, "rb") as file:
                headers = {
                    "Content-Length": str(os.fstat(file.fileno()).st_size),
                    "Content-Type": "application/octet-stream",
                }
                self._open("PUT", place, file, headers).close()

        self._try(path, send)
        self.rename(part, path)

    def rename(self, path: str, target: str) -> None:
        """Give a file or folder its name; a file that has it is replaced."""
        self._try(
            target,
            lambda: self._send("PUT", "RENAME", path, destination=target, renameoptions="OVERWRITE").close(),
        )

    def remove(self, path: str) -> None:
        """Delete a file or folder; already gone is fine."""
        self._try(path, lambda: self._send("DELETE", "DELETE", path, recursive="true").close())

    def _send(self, method: str, op: str, path: str, **options: str) -> "Any":
        query = dict(self._login, op=op, **options)
        url = "{}/webhdfs/v1{}?{}".format(self.uri, urllib.parse.quote(path), urllib.parse.urlencode(query))
        return self._open(method, url, None, {})

    def _open(self, method: str, url: str, body: "Any", headers: "dict[str, str]") -> "Any":
        request = urllib.request.Request(url, data=body, headers=headers, method=method)
        try:
            return self._opener.open(request, timeout=120)
        except urllib.error.HTTPError as error:
            # The first of two steps of a write answers where the contents go.
            if error.code == 307 and method == "PUT":
                return error
            raise

    def _try(self, path: str, act: "Any") -> "Any":
        """Act, and again after a pause where the failure may pass; errors tell no address with a token."""
        for number in range(TRIES):
            try:
                return act()
            except urllib.error.HTTPError as error:
                said, passing = _reason(error)
            except (OSError, ValueError) as error:
                said, passing = str(getattr(error, "reason", None) or error), True
            if not passing or number == TRIES - 1:
                break
            time.sleep(self._pause * 2**number)
        raise StorageError("{} on {}: {}".format(path, self.uri, said))


def _reason(error: urllib.error.HTTPError) -> "tuple[str, bool]":
    """What the storage says, and whether another try may help."""
    with error:
        text = error.read().decode("utf-8", "replace")
    name = ""
    try:
        found = json.loads(text)["RemoteException"]
        name, said = found["exception"], str(found["message"]).strip().splitlines()[0]
    except (ValueError, KeyError, TypeError, IndexError):
        said = "HTTP {}".format(error.code)
    return said, error.code >= 500 or name in ("StandbyException", "RetriableException", "SafeModeException")

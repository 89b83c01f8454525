"""`opai storage`: files on the cluster's storage, or at any address."""

from __future__ import annotations

from openpaisdk.commands.result import Column, Result, View
from openpaisdk.commands.wording import ago, file_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from openpaisdk.commands.context import Context
    from openpaisdk.storage.contract import Storage

ADDRESS = (
    "a path from the workspace on, /a/path from the top, NAME:PATH on a cluster storage, or an address "
    "such as hdfs://host/path, s3://bucket/path, sftp://host/path"
)


def _open(args: Namespace, context: Context, address: str) -> tuple[Storage, str]:
    from openpaisdk.storage import open_storage

    found: tuple[Storage, str] = open_storage(address, context.cluster)
    return found


class _Pointing:
    """What is not there gets a hint: where to look for it."""

    def __init__(self, text: str, context: Context) -> None:
        self._text = text
        self._context = context

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        from openpaisdk.errors import NotFoundError

        if isinstance(error, NotFoundError):
            error.hint = error.hint or _where_to_look(self._text, self._context.alias)


def _where_to_look(text: str, alias: str | None) -> str:
    from shlex import quote

    if not text:
        return "the workspace is made with the first `opai storage upload`"
    words = ["opai", "storage", "list", *(["-a", alias] if alias else [])]
    folder = _folder_of(text)
    return f"`{' '.join([*words, *([quote(folder)] if folder else [])])}` shows what there is"


def _folder_of(text: str) -> str:
    """The folder that an address is in, as one would write it; empty for the workspace."""
    start, mark, path = text.rpartition("://")
    place, colon, path = ("", "", path) if mark else path.rpartition(":")
    folder, slash, _ = path.rstrip("/").rpartition("/")
    return f"{start}{mark}{place}{colon}{folder or slash}"


def list_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("path", nargs="?", default="", metavar="PATH", help=ADDRESS)
    parser.add_argument("--storages", action="store_true", help="list the storages of the cluster instead")


def list_run(args: Namespace, context: Context) -> Result:
    if args.storages:
        rows = context.cluster().storages()
        columns = (Column("NAME", "name"), Column("DEFAULT", "default"), Column("VOLUME", "volumeName"))
        return Result(rows, View("table", columns=columns, name="name", empty="this cluster has no storages"))
    with _Pointing(args.path, context):
        store, path = _open(args, context, args.path)
        entries = store.list(path)
    found = [entry.as_dict() for entry in entries if not entry.name.endswith(".opai-part")]
    return Result(found, _listing(args.path or "the workspace"))


def _listing(shown: str) -> View:
    return View(
        "table",
        columns=(
            Column("NAME", lambda row: row["name"] + ("/" if row["type"] == "folder" else "")),
            Column("SIZE", lambda row: file_size(row["size"]) if row["type"] == "file" else "", right=True),
            Column("CHANGED", lambda row: ago(row["modified"])),
        ),
        name="name",
        empty=f"{shown} is empty",
    )


def status_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("path", nargs="?", default="", metavar="PATH", help=ADDRESS)


def status_run(args: Namespace, context: Context) -> Result:
    with _Pointing(args.path, context):
        store, path = _open(args, context, args.path)
        entry = store.stat(path)
    data: dict[str, Any] = {**entry.as_dict(), "path": path, "storage": store.address, "sha256": None}
    if entry.kind == "file":
        data["sha256"] = store.checksum(path)
    return Result(data, View("text", write=_status_text, name="path"))


def _status_text(data: dict[str, Any]) -> str:
    lines = [f"{data['storage']}  {data['path']}", f"{data['type']}, changed {ago(data['modified'])}"]
    if data["type"] == "file":
        lines.append(f"{file_size(data['size'])} ({data['size']:,} bytes)")
    if data["sha256"]:
        lines.append(f"sha256 {data['sha256']}")
    return "\n".join(lines) + "\n"


def upload_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("local", metavar="LOCAL", help="file or folder here")
    parser.add_argument("remote", nargs="?", default="", metavar="PATH", help=ADDRESS)
    parser.add_argument("--overwrite", action="store_true", help="replace files that are different")
    parser.add_argument(
        "--no-ignore", action="store_true", help="also what .gitignore and .opaiignore leave out"
    )
    parser.add_argument("--workers", type=int, default=4, metavar="N", help="files at once (4)")


def upload_run(args: Namespace, context: Context) -> Result:
    from openpaisdk.commands.transfers import Transfer, outcome_words
    from openpaisdk.storage import upload

    store, path = _open(args, context, args.remote)
    with Transfer(context) as progress:
        outcome = upload(
            store,
            args.local,
            _as_folder(path) if args.remote.endswith("/") else path,
            overwrite=args.overwrite,
            ignore=not args.no_ignore,
            workers=_workers(args),
            progress=progress,
        )
    context.say(outcome_words(outcome))
    return Result({"from": args.local, "to": path, **outcome}, View("nothing"))


def _as_folder(path: str) -> str:
    return path.rstrip("/") + "/"


def download_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("remote", metavar="PATH", help=ADDRESS)
    parser.add_argument("local", nargs="?", default=".", metavar="LOCAL", help="where to put it (here)")
    parser.add_argument("--overwrite", action="store_true", help="replace files that are different")
    parser.add_argument("--workers", type=int, default=4, metavar="N", help="files at once (4)")


def download_run(args: Namespace, context: Context) -> Result:
    from openpaisdk.commands.transfers import Transfer, outcome_words
    from openpaisdk.storage import download

    store, path = _open(args, context, args.remote)
    with _Pointing(args.remote, context), Transfer(context) as progress:
        outcome = download(
            store,
            path,
            args.local,
            overwrite=args.overwrite,
            workers=_workers(args),
            progress=progress,
        )
    context.say(outcome_words(outcome))
    return Result({"from": path, "to": args.local, **outcome}, View("nothing"))


def _workers(args: Namespace) -> int:
    from openpaisdk.errors import UsageError

    if args.workers < 1:
        raise UsageError(f"--workers: expected 1 or more, got {args.workers}")
    found: int = args.workers
    return found


def delete_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help=ADDRESS)
    parser.add_argument("-r", "--recursive", action="store_true", help="folders with all that is in them")


def delete_run(args: Namespace, context: Context) -> Result:
    from openpaisdk.errors import OpenPAIError

    deleted: list[str] = []
    failed: list[OpenPAIError] = []
    for text in args.paths:
        try:
            with _Pointing(text, context):
                deleted.append(_delete(text, args, context))
        except OpenPAIError as error:
            failed.append(error)
    if failed:
        for path in deleted:
            context.say(f"{path} deleted")
        for other in failed[1:]:
            context.say(f"error: {other.message}")
        raise failed[0]
    return Result(deleted, View("text"))


def _delete(text: str, args: Namespace, context: Context) -> str:
    from openpaisdk.errors import NotFoundError, UsageError

    store, path = _open(args, context, text)
    if not path.strip("/") and "://" not in text:
        raise UsageError(f"{text!r}: the whole storage is never deleted", hint="name what is in it")
    if not store.remove(path, recursive=args.recursive):
        raise NotFoundError(f"there is no {text}")
    return path


def mkdir_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help=ADDRESS)


def mkdir_run(args: Namespace, context: Context) -> Result:
    made = []
    for text in args.paths:
        store, path = _open(args, context, text)
        store.mkdir(path)
        made.append(path)
    return Result(made, View("text"))

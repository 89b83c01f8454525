"""Carrying the code of a job from one of our servers to another, by content."""

from __future__ import annotations

import json

from openpaisdk.errors import NotFoundError
from openpaisdk.workspace.shipping import framed, missing_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from openpaisdk.workspace.shipping import Server

_BINARY = {"content-type": "application/octet-stream"}


def carry_source(
    source: Server,
    target: Server,
    manifest: str,
    *,
    on_sent: Callable[[int, int], Any] | None = None,
) -> int:
    """Send what the second server lacks of the code behind a manifest; how many bytes. May be repeated."""
    try:
        text = source.request("GET", f"/api/v2/blobs/{manifest}", query={"manifest": "true"}).body
    except NotFoundError:
        raise NotFoundError(
            "the code of the job is not there any more, or it belongs to another user",
            hint="submit it again from the folder that has it",
        ) from None
    if manifest not in missing_of(target, [manifest]):
        return 0
    sizes = {entry["sha256"]: entry["size"] for entry in json.loads(text) if "sha256" in entry}
    wanted = missing_of(target, list(sizes))
    total, sent = sum(sizes[digest] for digest in wanted), 0
    for digest in wanted:
        with source.request("GET", f"/api/v2/blobs/{digest}", stream=True) as found:
            headers = {**_BINARY, "content-length": str(sizes[digest])}
            target.request("PUT", f"/api/v2/blobs/{digest}", headers=headers, body=found.iter_chunks())
        sent += sizes[digest]
        if on_sent is not None:
            on_sent(sent, total)
    body = framed(f"manifest:{manifest}", text)
    target.request("POST", "/api/v2/blobs/pack", headers=_BINARY, body=body, safe=True)
    return sent

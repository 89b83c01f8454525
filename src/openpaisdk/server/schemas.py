"""The shapes of what clients send, shared by several resources."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

UserName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]+$", min_length=1, max_length=128)]
GroupName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_]+$", min_length=1, max_length=128)]
NewPassword = Annotated[str, Meta(min_length=6)]
Email = Annotated[str, Meta(pattern=r"^([^@\s]+@[^@\s]+)?$", max_length=254)]

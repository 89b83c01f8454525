"""What a job is: protocol v2 and v1, validation, templates, exit codes, names; pure data, no network."""

from __future__ import annotations

# Not imported: typing alone costs a third of what the bare interpreter takes to start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from openpaisdk.protocol.checks import MAX_TEXT_BYTES, cautions, check, require_valid
    from openpaisdk.protocol.classify import Classified, classify_exit
    from openpaisdk.protocol.document import Document, load, load_file
    from openpaisdk.protocol.dumping import dump
    from openpaisdk.protocol.editing import set_value
    from openpaisdk.protocol.exit_codes import EXIT_CODES, ExitSpec, exit_spec
    from openpaisdk.protocol.legacy import check_v1, from_v1, is_v1
    from openpaisdk.protocol.names import (
        allot_port,
        debug_id,
        job_path,
        normalise_role,
        split_job,
        unique_name,
    )
    from openpaisdk.protocol.problems import Problem, ajv_errors
    from openpaisdk.protocol.reading import (
        effective_completion,
        image_uri,
        mask_secrets,
        priority_class,
        totals,
        virtual_cluster,
    )
    from openpaisdk.protocol.templates import entry_script, render, render_auth, unresolved

__all__ = [
    "EXIT_CODES",
    "MAX_TEXT_BYTES",
    "Classified",
    "Document",
    "ExitSpec",
    "Problem",
    "ajv_errors",
    "allot_port",
    "cautions",
    "check",
    "check_v1",
    "classify_exit",
    "debug_id",
    "dump",
    "effective_completion",
    "entry_script",
    "exit_spec",
    "from_v1",
    "image_uri",
    "is_v1",
    "job_path",
    "load",
    "load_file",
    "mask_secrets",
    "normalise_role",
    "priority_class",
    "render",
    "render_auth",
    "require_valid",
    "set_value",
    "split_job",
    "totals",
    "unique_name",
    "unresolved",
    "virtual_cluster",
]

# Public name -> module that has it; loaded on first use because most commands need only a few of them.
_HOMES = {
    "checks": ("MAX_TEXT_BYTES", "cautions", "check", "require_valid"),
    "classify": ("Classified", "classify_exit"),
    "document": ("Document", "load", "load_file"),
    "dumping": ("dump",),
    "editing": ("set_value",),
    "exit_codes": ("EXIT_CODES", "ExitSpec", "exit_spec"),
    "legacy": ("check_v1", "from_v1", "is_v1"),
    "names": ("allot_port", "debug_id", "job_path", "normalise_role", "split_job", "unique_name"),
    "problems": ("Problem", "ajv_errors"),
    "reading": (
        "effective_completion",
        "image_uri",
        "mask_secrets",
        "priority_class",
        "totals",
        "virtual_cluster",
    ),
    "templates": ("entry_script", "render", "render_auth", "unresolved"),
}


def __getattr__(name: str) -> Any:
    home = next((module for module, members in _HOMES.items() if name in members), None)
    if home is None:
        raise AttributeError(f"module 'openpaisdk.protocol' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"openpaisdk.protocol.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

"""A job back to text: key order kept, nothing lost, quoted so that every YAML reader sees the same values."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from openpaisdk.errors import UsageError

if TYPE_CHECKING:
    import yaml

# Written raw these are valid JSON, but YAML readers, OpenPAI's server among them, refuse or change them.
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_BLOCK = re.compile(r"[^\s](?:[^\S\n]*[\x21-\x7e\u00a1-\u1fff\u2030-\ud7ff]|\n(?!\Z)|\n\Z)*\Z")

_dumper: type[yaml.Dumper] | None = None


def dump(data: Any, format: str = "yaml") -> str:
    """The text of a job spec, `yaml` or `json`."""
    if format == "json":
        text = json.dumps(_finite(data), indent=2, ensure_ascii=False)
        return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"
    if format != "yaml":
        raise UsageError(f"unknown format {format!r}", hint="use yaml or json")
    import yaml

    try:
        return yaml.dump(
            data,
            Dumper=_job_dumper(),
            default_flow_style=False,
            sort_keys=False,
            allow_unicode=True,
            width=-1,
        )
    except UnicodeEncodeError as error:
        wrong = f"U+{ord(error.object[error.start]):04X}"
        raise UsageError(f"half a character ({wrong}) cannot be written as YAML", hint="use JSON") from None


def _finite(data: Any) -> Any:
    """JSON has no infinity and no NaN; null is what a JavaScript server makes of them."""
    if isinstance(data, float) and (data != data or data in (float("inf"), float("-inf"))):
        return None
    if isinstance(data, dict):
        return {key: _finite(item) for key, item in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(item) for item in data]
    return data


def _job_dumper() -> type[yaml.Dumper]:
    """Made on first use, because PyYAML is imported only where YAML is written."""
    global _dumper
    if _dumper is not None:
        return _dumper
    import yaml

    from openpaisdk.protocol.scalars import needs_quotes

    safe: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

    class JobDumper(safe):  # type: ignore[misc]
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: Any, value: str) -> Any:
        style = None
        if "\n" in value:
            style = "|" if _BLOCK.match(value) else '"'
        elif needs_quotes(value):
            style = "'"
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    JobDumper.add_representer(str, text)
    JobDumper.add_representer(tuple, JobDumper.yaml_representers[list])
    _dumper = JobDumper
    return _dumper

"""A job back to text: key order kept, nothing lost, quoted so that every YAML reader sees the same values."""

from __future__ import annotations

import json
import re

from openpaisdk.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import yaml

# Written raw these are valid JSON, but YAML readers, OpenPAI's server among them, refuse or change them.
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
# A block scalar cannot show these faithfully: blank beginnings, blanks before a line's end, odd characters.
_NO_BLOCK = re.compile(
    r"\A\s|[^\S\n](?:\n|\Z)|[^\n\x20-\x7e\xa1-\u167f\u2010-\u2027\u2030-\u205e\u2070-\u2fff\u3001-\ud7ff]"
)
# Line breaks to libyaml, characters like any other to js-yaml: only escapes mean the same to both.
_STRANGE_BREAK = re.compile("[\x85\u2028\u2029]")
_HINT = "use texts, numbers, true, false, null, lists and mappings"

_dumper: type[yaml.Dumper] | None = None


def dump(data: Any, format: str = "yaml") -> str:
    """The text of a job spec, `yaml` or `json`."""
    if format == "json":
        try:
            text = json.dumps(_finite(data), indent=2, ensure_ascii=False)
        except TypeError as error:
            raise UsageError(f"the job cannot be written as JSON: {error}", hint=_HINT) from None
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
    except yaml.representer.RepresenterError as error:
        raise UsageError(f"the job cannot be written as YAML: {error.args[-1]!r}", hint=_HINT) from None


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
        if _STRANGE_BREAK.search(value):
            style = '"'
        elif "\n" in value:
            style = '"' if _NO_BLOCK.search(value) else "|"
        elif needs_quotes(value):
            style = "'"
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    JobDumper.add_representer(str, text)
    JobDumper.add_representer(tuple, JobDumper.yaml_representers[list])
    _dumper = JobDumper
    return _dumper

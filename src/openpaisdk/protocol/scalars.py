"""How plain YAML text becomes a value, and a value becomes text again, both as OpenPAI's server does it.

The server reads with js-yaml 3, not with YAML 1.1: `yes`, `no`, `on` and `off` are texts, only true and
false are booleans, `1e-4` is a number, `0o17` a text, `017` octal and `1:30` base sixty. Dates are the one
exception made here: js-yaml makes JavaScript dates of them, which no field of a job wants; they stay texts.
"""

from __future__ import annotations

import json
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
# Longer ones are infinite to JavaScript, and Python takes quadratic time for them or refuses.
_LONGEST_INTEGER = 300
_MAY_BE_SPECIAL = frozenset("0123456789+-.~nNtTfF")
_INTEGER = re.compile(
    r"""[-+]?(?: 0b[01_]*[01] | 0x[0-9a-fA-F_]*[0-9a-fA-F] | 0[0-7_]*[0-7] | 0
               | [1-9](?:[0-9_]*[0-9])?(?::[0-5]?[0-9])* )""",
    re.VERBOSE,
)
_NOT_FINITE = {
    **{sign + word: float(sign + "inf") for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")},
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_WITH_POINT = re.compile(
    r"(?:[-+]?(?:0|[1-9][\d_]*)(?:\.[\d_]*)?|\.(?=_*\d)[\d_]+)(?:[eE][-+]?\d+)?", re.ASCII
)
_SIXTIETHS = re.compile(r"[-+]?\d[\d_]*(?::[0-5]?\d)+\.[\d_]*", re.ASCII)
# Read as something else by YAML 1.1 or 1.2 readers; written in quotes so that every reader agrees.
_ELSEWHERE_SPECIAL = re.compile(
    r"(?i:y|n|yes|no|on|off|=|<<|0o[0-7]+|\d{4}-\d\d?-\d\d?(?:[Tt \t].*)?|[-+]?[\d_.:]+(?:e[-+]?\d+)?)"
)


def resolve(text: str) -> Any:
    """The value of a plain (unquoted) scalar."""
    if text and text[0] not in _MAY_BE_SPECIAL:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return _integer(text)
    if text in _NOT_FINITE:
        return _NOT_FINITE[text]
    if text[-1] != "_" and (_WITH_POINT.fullmatch(text) or _SIXTIETHS.fullmatch(text)):
        return _float(text)
    return text


def needs_quotes(text: str) -> bool:
    """Whether some YAML reader would take this text for something else when it stands unquoted."""
    return not isinstance(resolve(text), str) or _ELSEWHERE_SPECIAL.fullmatch(text) is not None


def as_text(value: Any) -> str:
    """A value inside a text, spelled as JavaScript does: 1.0 is 1, True is true, lists have commas."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _number_text(value)
    if isinstance(value, list):
        return ",".join("" if item is None else as_text(item) for item in value)
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _integer(text: str) -> int | float:
    sign = -1 if text[0] == "-" else 1
    digits = text.lstrip("+-").replace("_", "")
    if len(digits) > _LONGEST_INTEGER:
        return _float(text)
    if ":" in digits:
        return sign * int(_base_sixty(digits))
    if digits[:2] in ("0b", "0x"):
        return sign * int(digits, 0)
    return sign * int(digits, 8 if digits[0] == "0" else 10)


def _float(text: str) -> float:
    sign = -1.0 if text[0] == "-" else 1.0
    digits = text.lstrip("+-").replace("_", "").lower()
    if ":" in digits:
        return sign * _base_sixty(digits)
    if digits[:2] in ("0b", "0x"):
        return sign * float("inf")
    return sign * float(digits)


def _base_sixty(digits: str) -> float:
    total = 0.0
    for part in digits.split(":"):
        total = total * 60 + float(part)
    return total


def _number_text(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    shortest = repr(value)
    if "e" not in shortest:
        return shortest
    mantissa, exponent = shortest.split("e")
    if -6 <= int(exponent) < 0:  # JavaScript keeps the plain notation down to 1e-6
        return f"{value:.{len(mantissa.lstrip('-').replace('.', '')) - 1 - int(exponent)}f}"
    return f"{mantissa}e{'-' if int(exponent) < 0 else '+'}{abs(int(exponent))}"

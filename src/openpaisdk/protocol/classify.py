"""From a raw exit code and the end of the logs to the exit code that OpenPAI reports."""

from __future__ import annotations

import re
from typing import NamedTuple

UNKNOWN_FAILURE = 255
SIGNALS = frozenset((130, 131, 132, 134, 135, 136, 137, 139, 141, 143))
SCANNED_BYTES = 10 * 1024 * 1024
LONGEST_MATCH = 2048


class Classified(NamedTuple):
    """The code, the rule that chose it, and the line of the log that it was chosen by."""

    code: int
    trigger: str | None = None
    matched: str | None = None


class _Rule(NamedTuple):
    code: int
    trigger: str
    patterns: tuple[re.Pattern[bytes], ...]
    raw: int | None = None
    log: str = "user"


def _rule(code: int, trigger: str, *patterns: str, raw: int | None = None, log: str = "user") -> _Rule:
    return _Rule(code, trigger, tuple(re.compile(pattern.encode()) for pattern in patterns), raw, log)


# Tried in this order, the first that fits wins. Every pattern begins with fixed letters, which makes the
# search through megabytes several times faster than an alternation. Python errors must begin a line, as the
# last line of a traceback does: these codes are never retried, and a program may log such a word and survive.
_RULES = (
    _rule(128, "double-bit ECC error", r"Double Bit[^\n]{0,200}?:\s*[1-9]", log="gpu"),
    _rule(220, "command not found", r"command not found", r": not found\r?\n", raw=127),
    _rule(
        221,
        "TensorFlow is out of memory",
        r"ResourceExhaustedError",
        r"OOM when allocating tensor",
        r"RESOURCE_EXHAUSTED: ",
    ),
    _rule(222, "MPI address not mapped", r"Signal code:\s*Address not mapped"),
    _rule(
        223,
        "uncorrectable ECC error",
        r"CUDA_ERROR_ECC_UNCORRECTABLE",
        r"cudaErrorECCUncorrectable",
        r"uncorrectable ECC error",
    ),
    _rule(
        224,
        "CUDA driver too old",
        r"CUDA driver version is insufficient",
        r"cudaErrorInsufficientDriver",
        r"NVIDIA driver on your system is too old",
    ),
    _rule(
        225,
        "cuDNN mismatch",
        r"cuDNN version mismatch",
        r"CUDNN_STATUS_VERSION_MISMATCH",
        r"Loaded runtime CuDNN library[^\n]{0,200}but source was compiled with",
        r"dropout state[^\n]{0,100}cuDNN",
    ),
    _rule(
        226,
        "CUDA is out of memory",
        r"CUDA out of memory",
        r"CUDA_ERROR_OUT_OF_MEMORY",
        r"cudaErrorMemoryAllocation",
        r"CUDA error: out of memory",
    ),
    _rule(
        228,
        "option not accepted",
        r"error: unrecognized arguments:",
        r"error: the following arguments are required:",
        r"error: argument [^\n]{1,200}: (?:invalid|expected|not allowed)",
        r"o such option:",
        r"unrecognized option",
        r"invalid option",
        r"illegal option",
        r"unknown option",
    ),
    _rule(
        229,
        "file cannot be read",
        r"\nFileNotFoundError:",
        r"\nUnicodeDecodeError:",
        r"\nUnicodeEncodeError:",
        r"\nIOError:",
        r"\nOSError:",
        r"\nPermissionError:",
        r"\nIsADirectoryError:",
        r"\nEOFError:",
        r"tensorflow\.[\w.]*(?:NotFoundError|DataLossError):",
    ),
    _rule(230, "save path not valid", r"Parent directory of [^\n]{1,500} doesn't exist, can't save"),
    _rule(
        231,
        "Python error",
        r"\nSyntaxError:",
        r"\nIndentationError:",
        r"\nTabError:",
        r"\nNameError:",
        r"\nUnboundLocalError:",
        r"\nAttributeError:",
        r"ickle\.UnpicklingError:",
    ),
    _rule(232, "import failed", r"\nImportError:", r"\nModuleNotFoundError:"),
    _rule(233, "index out of range", r"\nIndexError:", r"index out of range", r"out of bounds for axis"),
    _rule(234, "segmentation fault", r"egmentation fault"),
    _rule(235, "core dumped", r"ore dumped"),
    _rule(
        249,
        "SSH barrier",
        r"sshbarrier[^\n]{0,200}(?:gave up|give up|time|fail)",
        r"SSH barrier[^\n]{0,200}(?:gave up|give up|time|fail)",
        raw=10,
        log="runtime",
    ),
)


def classify_exit(
    raw_code: int, user_log_tail: bytes, runtime_log_tail: bytes = b"", *, gpu_report: bytes = b""
) -> Classified:
    """The reported code of an ended task; negative raw codes are signals, as Python's subprocess gives them.

    `gpu_report` is the answer of `nvidia-smi -q`, where there is one.
    """
    raw = 128 - raw_code if raw_code < 0 else raw_code
    if raw == 0:
        return Classified(0)
    logs = {
        "user": b"\n" + user_log_tail[-SCANNED_BYTES:],
        "runtime": b"\n" + runtime_log_tail[-SCANNED_BYTES:],
        "gpu": gpu_report,
    }
    for rule in _RULES:
        if rule.raw not in (None, raw) or (raw in SIGNALS and rule.log != "gpu"):
            continue
        for pattern in rule.patterns:
            if found := pattern.search(logs[rule.log]):
                return Classified(rule.code, rule.trigger, _line(logs[rule.log], found.end() - 1))
    if raw in SIGNALS:
        return Classified(raw, f"signal {raw - 128}")
    return Classified(UNKNOWN_FAILURE)


def _line(log: bytes, at: int) -> str:
    """The whole line around a match."""
    start = max(log.rfind(b"\n", 0, at) + 1, at - LONGEST_MATCH // 2)
    end = log.find(b"\n", at)
    line = log[start : end if end >= 0 else len(log)]
    return line[:LONGEST_MATCH].decode(errors="replace").strip()

"""From raw exit codes and logs to reported codes."""

from __future__ import annotations

import pytest

from openpaisdk.protocol import EXIT_CODES, classify_exit

TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n'


@pytest.mark.parametrize("raw", [130, 131, 132, 134, 135, 136, 137, 139, 141, 143])
def test_signals_stay_what_they_are(raw: int) -> None:
    found = classify_exit(raw, b"Segmentation fault (core dumped)\nNameError: x\n")
    assert found.code == raw
    assert classify_exit(-(raw - 128), b"") == found._replace()


@pytest.mark.parametrize(
    ("code", "raw", "log"),
    [
        (220, 127, "bash: line 3: pyhton: command not found\n"),
        (220, 127, "sh: 1: pyhton: not found\n"),
        (
            221,
            1,
            "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor\n",
        ),
        (
            222,
            1,
            "[node1:12] Signal: Segmentation fault (11)\n[node1:12] Signal code: Address not mapped (1)\n",
        ),
        (223, 1, "RuntimeError: CUDA error: uncorrectable ECC error encountered\n"),
        (224, 1, "RuntimeError: CUDA driver version is insufficient for CUDA runtime version\n"),
        (225, 1, "Loaded runtime CuDNN library: 7.1.2 but source was compiled with: 7.6.0.\n"),
        (
            226,
            1,
            TRACEBACK + "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB (GPU 0)\n",
        ),
        (228, 2, "usage: train.py [-h]\ntrain.py: error: unrecognized arguments: --lrr\n"),
        (228, 2, "train.py: error: argument --lr: invalid float value: 'x'\n"),
        (228, 2, "Error: No such option: --lrr\n"),
        (229, 1, TRACEBACK + "FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'\n"),
        (229, 1, TRACEBACK + "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff\n"),
        (230, 1, "ValueError: Parent directory of /nowhere/model doesn't exist, can't save.\n"),
        (231, 1, '  File "train.py", line 1\n    x = = 1\nSyntaxError: invalid syntax\n'),
        (231, 1, TRACEBACK + "NameError: name 'x' is not defined\n"),
        (231, 1, TRACEBACK + "AttributeError: 'int' object has no attribute 'x'\n"),
        (231, 1, TRACEBACK + "_pickle.UnpicklingError: invalid load key\n"),
        (232, 1, TRACEBACK + "ModuleNotFoundError: No module named 'torch'\n"),
        (233, 1, TRACEBACK + "IndexError: list index out of range\n"),
        (234, 1, "train.sh: line 1: 12 Segmentation fault      ./train\n"),
        (235, 1, "Aborted (core dumped)\n"),
    ],
)
def test_logs_tell_the_cause(code: int, raw: int, log: str) -> None:
    found = classify_exit(raw, f"epoch 1\n{log}".encode())
    assert found.code == code
    assert found.trigger
    assert found.matched
    assert found.matched in log
    assert code in EXIT_CODES


@pytest.mark.parametrize(
    ("raw", "log"),
    [
        (3, b"boom\n"),
        (1, b""),
        (1, b"bash: x: command not found\n"),
        (127, b"nothing to see\n"),
        (1, b"caught FileNotFoundError: going on\nthen it failed\n"),
        (1, b"no NameError: here\n"),
        (254, b""),
        (10, b"sshbarrier gave up\n"),
    ],
)
def test_anything_else_is_an_unknown_failure(raw: int, log: bytes) -> None:
    assert classify_exit(raw, log) == (255, None, None)


def test_success_is_success_whatever_the_log_says() -> None:
    assert classify_exit(0, b"NameError: x\n") == (0, None, None)


def test_the_ssh_barrier_and_broken_gpus() -> None:
    assert classify_exit(10, b"", b"[ssh] sshbarrier: giving up after 1800 tries, timeout\n").code == 249
    assert classify_exit(10, b"", b"fine\n").code == 255
    report = b"  ECC Errors\n    Volatile\n      Double Bit Total : 2\n"
    assert classify_exit(1, b"", gpu_report=report).code == 128
    assert classify_exit(1, b"", gpu_report=report.replace(b": 2", b": 0")).code == 255


def test_the_first_rule_wins_and_matches_are_short() -> None:
    log = b"CUDA out of memory" + b"x" * 5000 + b"\nNameError: x\n"
    found = classify_exit(1, log)
    assert found.code == 226
    assert len((found.matched or "").encode()) <= 2048


def test_only_the_end_of_a_long_log_counts() -> None:
    assert classify_exit(1, b"NameError: x\n" + b"y" * (10 * 1024 * 1024)).code == 255

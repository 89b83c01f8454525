"""Computed names and ports, against values taken from a running OpenPAI server."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openpaisdk.errors import UsageError
from openpaisdk.protocol import allot_port, debug_id, job_path, normalise_role, split_job, unique_name

POD = "aaaaaaaa-0000-0000-0000-000000000000"


def test_ports_agree_with_the_server() -> None:
    assert [allot_port(POD, "tb", 0), allot_port(POD, "tb", 1)] == [30423, 31819]
    assert allot_port(POD, "ssh", 0) == 23660
    assert allot_port(POD, "http", 0) == 39896


@given(st.uuids(), st.text(max_size=5), st.integers(0, 99))
def test_ports_stay_in_their_range(uid: object, label: str, index: int) -> None:
    assert 15000 <= allot_port(str(uid), label, index) < 40000
    assert 100 <= allot_port(str(uid), label, index, 100, 110) < 110


def test_the_id_of_a_job() -> None:
    assert debug_id("admin", "st1") == "a80635d338e0136246adc58c7a704e4d"
    assert job_path("admin", "st1") == "admin~st1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("me~train", ("me", "train")),
        ("me%7Etrain", ("me", "train")),
        ("me%7etrain", ("me", "train")),
        ("train", ("you", "train")),
        ("me~a~b", ("me", "a~b")),
    ],
)
def test_split_job(text: str, expected: tuple[str, str]) -> None:
    assert split_job(text, "you") == expected


@pytest.mark.parametrize("text", ["", "~", "~x", "me~"])
def test_split_job_refuses_what_names_no_job(text: str) -> None:
    with pytest.raises(UsageError, match="does not name a job"):
        split_job(text, "you")
    with pytest.raises(UsageError):
        split_job("train", None)


def test_role_names() -> None:
    assert normalise_role("Worker_A") == "workera"
    assert normalise_role("ps-0.x~") == "ps0x"


@given(st.text(max_size=400))
def test_unique_names_are_valid_whatever_the_stem(stem: str) -> None:
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,246}-[0-9a-f]{8}", unique_name(stem))


def test_unique_names() -> None:
    assert re.fullmatch(r"train-[0-9a-f]{8}", unique_name("train"))
    assert re.fullmatch(r"my-job-v2-[0-9a-f]{8}", unique_name("my job v2."))
    assert re.fullmatch(r"job-[0-9a-f]{8}", unique_name("!!!"))
    assert len({unique_name("a") for _ in range(100)}) == 100


def test_light_parts_load_no_yaml() -> None:
    program = (
        "import sys, openpaisdk.protocol as p\n"
        "p.unique_name('x'); p.normalise_role('x'); p.split_job('a~b'); p.dump({'a': 1}, 'json')\n"
        "doc = p.load('{\"a\": 1}'); p.check(doc); p.set_value(doc.data, 'b.c=2'); p.exit_spec(255)\n"
        "print([name for name in ('yaml', 'hashlib', 'dataclasses', 'inspect') if name in sys.modules])\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_public_names_are_all_there() -> None:
    from openpaisdk import protocol

    assert all(getattr(protocol, name) is not None for name in protocol.__all__)
    assert dir(protocol) == sorted(protocol.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        protocol.nothing  # noqa: B018

"""Fixtures for the client: servers, a network and a home of one's own."""

from __future__ import annotations

import os

import pytest
from client_doubles import Answers, Clock, FaultyServer

from openpaisdk.core import Cluster


@pytest.fixture
def faulty():
    server = FaultyServer()
    yield server
    server.close()


@pytest.fixture
def answers():
    return Answers()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def make_cluster(answers, clock):
    def make(**given):
        given.setdefault("user", "me")
        if "passwd" not in given:
            given.setdefault("token", "t0ken")
        return Cluster(
            pai_uri=given.pop("pai_uri", "http://pai.example.com"),
            transport=given.pop("transport", answers),
            sleep=clock.sleep,
            clock=clock,
            **given,
        )

    return make


@pytest.fixture
def cluster(make_cluster):
    return make_cluster()


@pytest.fixture
def own_home(tmp_path, monkeypatch):
    """An empty home, an empty working directory, and none of our variables in the environment."""
    for name in list(os.environ):
        if name.startswith(("OPAI_", "OPENPAI_", "PAI_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    work = tmp_path / "work" / "deep"
    work.mkdir(parents=True)
    monkeypatch.setenv("OPENPAI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "elsewhere"))
    monkeypatch.chdir(work)
    return tmp_path / "home"

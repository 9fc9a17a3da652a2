"""The level of the runtime's log."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

import pypto
from pypto import runtime
from pypto.runtime import log_config


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Both levels come back after each test."""
    own, compiler = runtime.log_level(), pypto.get_log_level()
    yield
    runtime.configure_log(own)
    pypto.set_log_level(compiler)


@pytest.mark.parametrize(
    ("level", "number"),
    [
        ("debug", 10), ("v0", 15), ("info", 20), ("v9", 24), ("timing", 25), ("warn", 30), ("WARNING", 30),
        ("error", 40), ("null", 60), (17, 17), ("33", 33),
    ],
)  # fmt: skip
def test_levels_are_names_or_numbers(level: str | int, number: int):
    runtime.configure_log(level)
    assert runtime.log_level() == number == log_config.current_level()


@pytest.mark.parametrize(
    ("level", "followed"),
    [("debug", "DEBUG"), ("info", "INFO"), ("timing", "WARN"), ("error", "ERROR"), ("null", "NONE")],
)
def test_the_compiler_follows_only_when_asked(level: str, followed: str):
    pypto.set_log_level(pypto.LogLevel.EVENT)
    runtime.configure_log(level)
    assert pypto.get_log_level() is pypto.LogLevel.EVENT
    runtime.configure_log(level, sync_pypto=True)
    assert pypto.get_log_level() is pypto.LogLevel[followed]


def test_unknown_levels_are_rejected():
    before = runtime.log_level()
    with pytest.raises(ValueError, match="Unknown log level 'loud'"):
        runtime.configure_log("loud")
    with pytest.raises(ValueError, match="not negative"):
        runtime.configure_log(-1)
    with pytest.raises(TypeError, match="name or a number"):
        runtime.configure_log(1.5)  # type: ignore[arg-type]
    assert runtime.log_level() == before


def test_the_environment_gives_the_first_level():
    code = "import pypto, pypto.runtime as r; print(r.log_level(), pypto.get_log_level().name)"
    for variables, expected in (
        ({}, "25 INFO"),
        ({"PYPTO_RUNTIME_LOG": "error"}, "40 INFO"),
        ({"PYPTO_RUNTIME_LOG": "error", "PYPTO_RUNTIME_LOG_SYNC": "1"}, "40 ERROR"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == expected

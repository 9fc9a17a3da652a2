"""Compiles the texts of a module together, which costs one start of the compiler instead of one per test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.codegen.orchestration.builders import PENDING, compile_pending


@pytest.fixture(scope="module", autouse=True)
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    yield
    if PENDING:
        compile_pending(tmp_path_factory.mktemp("orchestrations"))

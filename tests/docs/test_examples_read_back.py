"""The programs of the examples print, parse back equal and print alike after every pass."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

import pypto.language as pl
from pypto import ir, passes

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py"))


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def programs_of(module: ModuleType) -> list[ir.Program]:
    found = [value for value in vars(module).values() if isinstance(value, ir.Program)]
    return [*found, module.build(2)] if hasattr(module, "build") else found


class PrintsAlike(passes.PassInstrument):
    """After each pass, the text of the program read back is the text it was read from."""

    def __init__(self) -> None:
        super().__init__()
        self.passes_seen: list[str] = []

    def run_after_pass(self, pass_obj: passes.Pass, program: ir.Program) -> None:
        text = program.as_python(format=False)
        assert pl.parse(text).as_python(format=False) == text, f"after {pass_obj.get_name()}"
        self.passes_seen.append(pass_obj.get_name())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_programs_of_the_example_read_back_equal_after_every_pass(path):
    programs = programs_of(loaded(path))
    assert programs, "an example defines its programs at module level, or makes them in build(layers)"
    manager = ir.PassManager.get_strategy(ir.OptimizationStrategy.Default)
    for program in programs:
        alike = PrintsAlike()
        with passes.PassContext([ir.make_roundtrip_instrument(), alike]):
            manager.run_passes(program)
        assert alike.passes_seen == manager.get_pass_names()

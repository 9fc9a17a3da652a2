"""Loading a program, and what belongs to it, from a Python file named on the command line."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from pypto import ir


class ProgramFileError(Exception):
    """The file cannot be loaded, or it does not hold the program that was asked for."""


@dataclass(frozen=True, slots=True)
class ProgramFile:
    """A program with the module that defines it."""

    name: str
    program: ir.Program
    module: ModuleType


def load_program_file(spec: str) -> ProgramFile:
    """Load `FILE` or `FILE:NAME`. Without a name, the file must define exactly one program.

    The file is executed. Raises `ProgramFileError` when there is no such file or program.
    """
    path, name = _split(spec)
    module = _execute(path)
    programs = {key: value for key, value in vars(module).items() if isinstance(value, ir.Program)}
    if name is not None:
        if name not in programs:
            raise ProgramFileError(f"{path} defines no program '{name}'; it has {_listed(programs)}")
        return ProgramFile(name, programs[name], module)
    if len(programs) != 1:
        raise ProgramFileError(f"{path} defines {_listed(programs)}; name one as {path}:NAME")
    ((name, program),) = programs.items()
    return ProgramFile(name, program, module)


def _listed(programs: dict[str, ir.Program]) -> str:
    return ", ".join(sorted(programs)) or "no program"


def _split(spec: str) -> tuple[Path, str | None]:
    path = Path(spec)
    if not path.exists() and ":" in spec:
        file, _, name = spec.rpartition(":")
        path, chosen = Path(file), name
    else:
        chosen = None
    if not path.is_file():
        raise ProgramFileError(f"There is no file {path}")
    return path, chosen


def _execute(path: Path) -> ModuleType:
    description = importlib.util.spec_from_file_location(path.stem, path)
    if description is None or description.loader is None:
        raise ProgramFileError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(description)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        description.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    return module

"""Loading a program, and what belongs to it, from a Python file named on the command line."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from pypto import ir

if TYPE_CHECKING:
    from pypto.jit import JITFunction


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

    A name may also be that of a function such as `def build(layers: int = 4) -> ir.Program`, which can be
    called without arguments, or that of an `@pl.jit` function whose annotations say the shapes; a file
    without a program is asked for its one such function. The file is executed. Raises `ProgramFileError` when
    there is no such file or program.
    """
    path, name = _split(spec)
    module = _execute(path)
    programs = {key: value for key, value in vars(module).items() if isinstance(value, ir.Program)}
    builders: dict[str, Callable[[], ir.Program]] = {
        key: value for key, value in vars(module).items() if _builds_a_program(value, module)
    }
    builders |= {key: partial(_annotated, value) for key, value in vars(module).items() if _is_entry(value)}
    if name is None:
        names = list(programs or builders)
        if not names:
            raise ProgramFileError(f"{path} defines no program; write a class decorated with @pl.program")
        if len(names) != 1:
            raise ProgramFileError(f"{path} defines {_listed(names)}; name one as {path}:NAME")
        (name,) = names
    if name in builders:
        return ProgramFile(name, builders[name](), module)
    if name not in programs:
        known = _listed([*programs, *builders])
        raise ProgramFileError(f"{path} defines no program '{name}'; it has {known}")
    return ProgramFile(name, programs[name], module)


def _builds_a_program(value: object, module: ModuleType) -> bool:
    """Whether `value` is a function of this file that returns a program and needs no arguments."""
    if not inspect.isfunction(value) or value.__module__ != module.__name__:
        return False
    try:
        signature = inspect.signature(value, eval_str=True)
    except NameError:  # an annotation that only a type checker resolves
        return False
    if signature.return_annotation is not ir.Program:
        return False
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return all(
        each.default is not inspect.Parameter.empty or each.kind in variadic
        for each in signature.parameters.values()
    )


def _is_entry(value: object) -> bool:
    """Whether `value` is a jit function that starts a program."""
    jit = sys.modules.get("pypto.jit")  # a file with such a function has imported it; for others it is slow
    return jit is not None and isinstance(value, jit.JITFunction) and value.kind in ("orchestration", "host")


def _annotated(function: JITFunction) -> ir.Program:
    """The program of a jit function for the shapes in its annotations."""
    try:
        return function.annotated_program()
    except TypeError as error:
        raise ProgramFileError(f"{function.__name__}: {error}") from error


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "no program"


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
    taken = path.stem in sys.modules or path.stem in sys.stdlib_module_names
    name = f"program_{path.stem}" if taken else path.stem
    description = importlib.util.spec_from_file_location(name, path)
    if description is None or description.loader is None:
        raise ProgramFileError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(description)
    sys.modules[name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        description.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    return module

"""What the commands do with a program: run passes up to a point, compile, compare."""

from __future__ import annotations

import contextlib
import re
import sysconfig
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pypto import ir
from pypto.core.errors import InternalError
from pypto.ir.entry_points import entry_points
from pypto.language.parser.diagnostics import ErrorRenderer, ParserError
from pypto.passes.dedup.explain import DedupRecord
from pypto.runtime.bundle import is_bundle, load_bundle, write_bundle
from pypto.runtime.compile import compile
from pypto.runtime.compiled_program import CompiledProgram, OrchestrationProgram
from pypto.tools.arguments import Argument, Parameter, parameters_of, parameters_of_signature
from pypto.tools.program_file import ProgramFile, ProgramFileError, load_program_file

_PACKAGE = str(Path(__file__).resolve().parents[1])
_LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))


class CheckFailed(Exception):
    """The results differ from what the file expects."""


class UnknownPass(Exception):
    """No pass of the pipeline has that name."""


def entry_function(program: ir.Program) -> ir.Function:
    """The function that a call of the compiled program enters: the Orchestration, or the only function."""
    functions = list(program.functions_.values())
    entries = entry_points(program)
    for candidates in (
        [f for f in entries if f.func_type is ir.FunctionType.Orchestration],
        [f for f in entries if f.func_type is ir.FunctionType.Opaque],
        functions,
    ):
        if len(candidates) == 1:
            return candidates[0]
    raise ProgramFileError(f"Program '{program.name}' has no single entry function to run")


def expected_function(loaded: ProgramFile) -> Callable[..., Any]:
    """The function `expected` of the file. Raises `ProgramFileError` when there is none."""
    expected = getattr(loaded.module, "expected", None)
    if not callable(expected):
        raise ProgramFileError(
            "--check needs a function `expected(**inputs)` in the file that returns the outputs by name"
        )
    return expected  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Runnable:
    """Something to run: a program in a Python file, a bundle, or a build directory.

    `open` makes it callable for the duration of a block; `expected` is what the file says comes out.
    """

    parameters: list[Parameter]
    open: Callable[[], contextlib.AbstractContextManager[Any]]
    expected: Callable[..., Any] | None = None


def runnable(spec: str, output: Path | None, check: bool) -> Runnable:
    """What `spec` names: `FILE`, `FILE:NAME`, `DIR`, or `DIR:NAME` for one of several orchestrations."""
    directory, _, name = (spec, "", "") if Path(spec).exists() else spec.rpartition(":")
    if Path(directory).is_dir() and directory:
        if check:
            raise ProgramFileError(f"--check needs a program in a Python file; {directory} is a directory")
        if output is not None:
            raise ProgramFileError(f"{directory} is built already; --output is for programs in Python files")
        built = _open_directory(Path(directory), name)
        return Runnable(
            parameters_of_signature(built.signature), lambda: contextlib.nullcontext(_loaded(built))
        )
    file = load_program_file(spec)
    expected = expected_function(file) if check else getattr(file.module, "expected", None)
    parameters = parameters_of(entry_function(file.program))
    return Runnable(parameters, lambda: compiled_program(file.program, output), expected)


def _open_directory(directory: Path, name: str) -> OrchestrationProgram:
    if is_bundle(directory):
        return load_bundle(directory)
    compiled = CompiledProgram.from_dir(directory)
    return compiled[name] if name else compiled.single()


def _loaded(program: OrchestrationProgram) -> OrchestrationProgram:
    program.load()
    return program


@contextlib.contextmanager
def compiled_program(program: ir.Program, output: Path | None) -> Iterator[Any]:
    """The compiled program, in a directory that lives as long as needed when none is given."""
    with contextlib.ExitStack() as stack:
        directory = output if output is not None else stack.enter_context(tempfile.TemporaryDirectory())
        compiled = compile(program, directory, dump_passes=False)
        if not compiled.orchestration_names:
            compiled.load()
        yield compiled


def bundle_program(program: ir.Program, entry: str | None, directory: Path, *, portable: bool) -> Path:
    """Compile a program and write it as a bundle; `entry` chooses among several orchestrations."""
    with compiled_program(program, None) as compiled:
        if entry is None:
            return write_bundle(compiled, directory, portable=portable)
        if entry not in (names := compiled.orchestration_names or [compiled.single().name]):
            raise ProgramFileError(f"There is no orchestration '{entry}'; the program has {', '.join(names)}")
        chosen = compiled[entry] if compiled.orchestration_names else compiled
        return write_bundle(chosen, directory, portable=portable)


def compare(expected: Callable[..., Any], arguments: Sequence[Argument], rtol: float, atol: float) -> str:
    """Compare outputs with `expected(**inputs)`; a line that says how close. Raises `CheckFailed`."""
    import inspect

    wanted_names = inspect.signature(expected).parameters
    results = expected(**{a.name: a.initial for a in arguments if a.name in wanted_names})
    if not isinstance(results, Mapping):
        raise CheckFailed(
            f"`expected` returns {type(results).__name__}; it has to return the outputs by name, "
            "as in {'out': array}"
        )
    values = {argument.name: argument.value for argument in arguments}
    worst = 0.0
    for name, want in results.items():
        if name not in values:
            raise CheckFailed(f"`expected` returns '{name}', which is no parameter of the program")
        try:
            np.testing.assert_allclose(
                np.asarray(values[name], np.float64),
                np.asarray(want, np.float64),
                rtol=rtol,
                atol=atol,
                err_msg=name,
            )
        except AssertionError as mismatch:
            raise CheckFailed(f"check failed{mismatch}") from None
        difference = np.abs(np.asarray(values[name], np.float64) - np.asarray(want, np.float64))
        worst = max(worst, float(difference.max(initial=0.0)))
    return f"check passed: {', '.join(results)}; largest error {worst:.3g}"


def _pipeline() -> Any:
    from pypto.passes.manager import OptimizationStrategy, PassManager

    return PassManager.get_strategy(OptimizationStrategy.Default)


def pass_names() -> list[str]:
    """The passes of the default pipeline, in order."""
    names: list[str] = _pipeline().pass_names
    return names


def _plain(name: str) -> str:
    return re.sub(r"[_\s]", "", name).lower()


def occurrences(name: str) -> list[int]:
    """Where in the pipeline the pass of this name is, in either spelling. Raises `UnknownPass`."""
    names = pass_names()
    found = [position for position, known in enumerate(names) if _plain(known) == _plain(name)]
    if not found:
        raise UnknownPass(f"There is no pass '{name}'; the pipeline has: {', '.join(names)}")
    return found


def program_after(program: ir.Program, name: str) -> ir.Program:
    """The program after the pass of this name; `NAME:2` is its second run. Raises `UnknownPass`."""
    plain, colon, number = name.partition(":")
    found = occurrences(plain)
    if colon and not (number.isdecimal() and 1 <= int(number) <= len(found)):
        raise UnknownPass(f"There is no pass '{name}'; {plain} runs {len(found)} times: number it from 1")
    for transform in _pipeline().passes[: found[int(number or 1) - 1] + 1]:
        program = transform(program)
    return program


def file_text(program: ir.Program, *, concise: bool) -> str:
    """The printed program as a file that Python can run: the printed text leaves it to `pl.parse` to know
    `pld`."""
    text = program.as_python(concise=concise)
    if not re.search(r"\bpld\.", text):
        return text
    header = "import pypto.language as pl\n"
    return text.replace(header, f"{header}import pypto.language.distributed as pld\n", 1)


def deduplication_records(program: ir.Program) -> Sequence[DedupRecord]:
    """What deduplication decides about each kernel and bundle of the program."""
    from pypto import passes

    return passes.explain_deduplication(program_after(program, "OutlineClusterScopes"))


_USER_CLASSES = (ValueError, TypeError, RuntimeError, NotImplementedError, OSError)


def is_internal(error: BaseException) -> bool:
    """Whether the error can only come from a mistake in pypto, whatever the user wrote."""
    if isinstance(error, InternalError):
        return not isinstance(error, ValueError)
    if isinstance(error, _USER_CLASSES) or type(error).__module__.split(".")[0] == "pypto":
        return False
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, AttributeError) and frames and frames[-1].name == "__getattr__":
        frames.pop()  # the user's file asks a module of pypto for a name that it does not have
    return bool(frames) and frames[-1].filename.startswith(_PACKAGE)


def describe_error(error: BaseException) -> str:
    """What the user needs to know: the message, and for plain Python errors in the user's file also the
    line."""
    if isinstance(error, ParserError):
        return ErrorRenderer().render(error)
    if type(error).__module__.split(".")[0] == "pypto" or isinstance(error, OSError):
        return str(error)
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}: SyntaxError: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith((_PACKAGE, "<", *_LIBRARIES))]
    raised_here = bool(frames) and frames[-1].filename.startswith(_PACKAGE)
    if raised_here and isinstance(error, _USER_CLASSES):
        return str(error)
    place = f"{own[-1].filename}:{own[-1].lineno}: " if own else ""
    return f"{place}{type(error).__name__}: {error}"

"""The `pypto` command.

Exit status: 0 success, 1 the program or a check failed, 2 wrong use of the command, 70 an error inside pypto
itself. A mistake in the user's program never shows a Python traceback; `--traceback` asks for one.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from pypto.core.logging import LogLevel, set_log_level
from pypto.tools import cache

EXIT_FAILED, EXIT_INTERNAL = 1, 70

app = typer.Typer(
    help="Compile, run and inspect tile programs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

ProgramArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE[:NAME]", help="A Python file; NAME is needed when it defines several programs."
    ),
]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="DIR", help="Where to write the artefact.")
]


@app.command()
def run(
    program: Annotated[
        str,
        typer.Argument(
            metavar="FILE[:NAME]|DIR",
            help="A program in a Python file, or a directory that `compile` or `bundle` wrote.",
        ),
    ],
    inputs: Annotated[
        Path | None,
        typer.Option(metavar="FILE.npz", help="Arrays by parameter name; random where one is missing."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random inputs.")] = 0,
    dim: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=N",
            help="Extent of a dynamic dimension, by its symbol or as PARAM.AXIS; repeatable.",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Compare with `expected(**inputs)` of the file, which returns the outputs by name.",
        ),
    ] = False,
    rtol: Annotated[float, typer.Option(help="Relative tolerance of --check.")] = 2e-4,
    atol: Annotated[float, typer.Option(help="Absolute tolerance of --check.")] = 2e-4,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE.npz", help="Write all arrays after the run.")
    ] = None,
    output: OutputOption = None,
) -> None:
    """Run a program once, compiled before where it is not yet, and print what came out."""
    from pypto.tools.arguments import make_arguments
    from pypto.tools.reports import arguments_table, print_table
    from pypto.tools.sessions import compare, runnable

    started = time.perf_counter()
    chosen = runnable(program, output, check)
    ready_seconds = time.perf_counter() - started
    arguments = make_arguments(
        chosen.parameters,
        seed=seed,
        dims=_parse_dims(dim or []),
        inputs=inputs,
        expected=chosen.expected,
    )
    started = time.perf_counter()
    with chosen.open() as compiled:
        ready_seconds += time.perf_counter() - started
        started = time.perf_counter()
        compiled(*(argument.value for argument in arguments))
        run_seconds = time.perf_counter() - started
    print_table(arguments_table(arguments))
    typer.echo(f"ready in {ready_seconds:.3f} s, ran in {run_seconds * 1e3:.3f} ms")
    if save is not None:
        import numpy as np

        np.savez(save, **{argument.name: argument.value for argument in arguments})
    if check and chosen.expected is not None:
        typer.echo(compare(chosen.expected, arguments, rtol, atol))


@app.command("compile")
def compile_command(program: ProgramArgument, output: OutputOption = None) -> None:
    """Write and build the artefact of a program."""
    from pypto.runtime.compile import compile
    from pypto.tools.program_file import load_program_file

    loaded = load_program_file(program)
    started = time.perf_counter()
    compiled = compile(loaded.program, output)
    for part in [compiled[name] for name in compiled.orchestration_names] or [compiled.single()]:
        part.load()
    typer.echo(f"{compiled.output_dir} in {time.perf_counter() - started:.3f} s")


@app.command()
def bundle(
    program: ProgramArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="An empty folder, or an older bundle.")
    ],
    entry: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which of several orchestrations to bundle.")
    ] = None,
    portable: Annotated[
        bool, typer.Option("--portable", help="For every CPU of this family, not the best for this one.")
    ] = False,
) -> None:
    """Write a program as a folder that runs without compiler and sources."""
    from pypto.tools.program_file import load_program_file
    from pypto.tools.sessions import bundle_program

    manifest = bundle_program(load_program_file(program).program, entry, output, portable=portable)
    size = sum(file.stat().st_size for file in manifest.parent.rglob("*") if file.is_file())
    typer.echo(f"{manifest.parent}: {size / 1024:.0f} KiB; run it with: pypto run {manifest.parent}")


@app.command()
def show(
    program: ProgramArgument,
    after: Annotated[
        str | None,
        typer.Option(
            metavar="PASS[:K]",
            help="A pass of the pipeline, as ConvertToSSA or convert_to_ssa; Simplify:2 is its second run.",
        ),
    ] = None,
    passes: Annotated[bool, typer.Option("--passes", help="List the passes instead.")] = False,
    concise: Annotated[
        bool, typer.Option("--concise", help="Leave out types of assigned variables.")
    ] = False,
) -> None:
    """Print a program as written, or as it is after a pass."""
    from pypto.tools.program_file import load_program_file
    from pypto.tools.sessions import file_text, occurrences, pass_names, program_after

    if passes:
        typer.echo("\n".join(pass_names()))
        return
    loaded = load_program_file(program)
    if after is not None and ":" not in after and (runs := len(occurrences(after))) > 1:
        typer.echo(f"pypto: {after} runs {runs} times; this is after the first, as {after}:1", err=True)
    shown = loaded.program if after is None else program_after(loaded.program, after)
    typer.echo(file_text(shown, concise=concise))


@app.command()
def explain(
    program: ProgramArgument,
    every: Annotated[
        bool, typer.Option("--all", help="One row per function, merged ones and wrappers included.")
    ] = False,
) -> None:
    """Show which kernels share a definition, which do not, and what to change so that they do."""
    from pypto.tools import reports
    from pypto.tools.program_file import load_program_file
    from pypto.tools.sessions import deduplication_records

    records = deduplication_records(load_program_file(program).program)
    if every:
        tables = [reports.deduplication_table(records)]
    else:
        tables = [reports.sharing_table(records), reports.own_definitions_table(records)]
    for table in tables:
        if table.row_count:
            reports.print_table(table)
    typer.echo(reports.deduplication_summary(records))


app.add_typer(cache.app, name="cache")


def _parse_dims(given: list[str]) -> dict[str, int]:
    dims = {}
    for item in given:
        name, _, extent = item.partition("=")
        if not name or not extent.isdecimal():
            raise typer.BadParameter(f"'{item}' is not NAME=N", param_hint="--dim")
        dims[name] = int(extent)
    return dims


def main() -> NoReturn:
    """Entry point: run the command and turn errors into messages and exit codes.

    Notes below warnings do not show unless `PYPTO_LOG_LEVEL` asks for them: the files they point at are gone
    with the command's temporary directory.
    """
    if "PYPTO_LOG_LEVEL" not in os.environ:
        set_log_level(LogLevel.WARN)
    wants_traceback = "--traceback" in sys.argv
    if wants_traceback:
        sys.argv.remove("--traceback")
    try:
        app()
    except Exception as error:
        from pypto.tools.sessions import describe_error, is_internal

        if wants_traceback:
            traceback.print_exc()
        internal = is_internal(error)
        print(f"pypto: {'internal error: ' if internal else ''}{describe_error(error)}", file=sys.stderr)
        sys.exit(EXIT_INTERNAL if internal else EXIT_FAILED)
    sys.exit(0)


if __name__ == "__main__":
    main()

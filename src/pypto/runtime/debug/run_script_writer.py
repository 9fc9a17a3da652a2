"""Writes `debug/run.py`, a script in a build directory that runs it and that a person may edit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pypto import ir
from pypto.runtime.metadata import ParamInfo

__all__ = ["write_run_script"]

_SCRIPT = '''"""Runs this build. Edit the inputs and the comparison; `--help` lists the options."""

import sys
from pathlib import Path

import numpy as np

from pypto.runtime.debug.run_script import array, main

rng = np.random.default_rng(0)


def _inline_inputs():
    """The arguments, in parameter order. Dynamic dims are 1, scalars must be filled in."""
    return [
{inputs}
    ]


def _user_compare(arguments):
    """Called after the run with the arguments; raise AssertionError for wrong results."""


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parents[1], _inline_inputs, _user_compare{platform}))
'''


def write_run_script(
    work_dir: Path | str, param_infos: Sequence[ParamInfo], *, platform: str | None = None
) -> Path:
    """Write the script for a program with these parameters; `platform` is its default."""
    path = Path(work_dir) / "debug" / "run.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    inputs = "\n".join(f"        {_value(info)},  # {info.name}" for info in param_infos)
    chosen = "" if platform is None else f", {platform!r}"
    path.write_text(_SCRIPT.format(inputs=inputs, platform=chosen), encoding="utf-8")
    return path


def _value(info: ParamInfo) -> str:
    if info.shape is None:
        return "None"
    shape = [1 if extent == ir.DYNAMIC_DIM else extent for extent in info.shape]
    if info.direction is ir.ParamDirection.Out:
        values = f"np.zeros({shape})"
    elif info.dtype.is_float():
        values = f"rng.standard_normal({shape})"
    else:
        values = f"rng.integers(0, {2 if str(info.dtype) == 'bool' else 8}, {shape})"
    return f'array({values}, "{info.dtype}")'

"""`pl.adir`: directions of call arguments, as they appear in `attrs={"arg_directions": [...]}`."""

from __future__ import annotations

from pypto import ir

input = ir.ArgDirection.Input
output = ir.ArgDirection.Output
output_existing = ir.ArgDirection.OutputExisting
inout = ir.ArgDirection.InOut
no_dep = ir.ArgDirection.NoDep
scalar = ir.ArgDirection.Scalar

NAME_TO_DIRECTION: dict[str, ir.ArgDirection] = {
    "input": input,
    "output": output,
    "output_existing": output_existing,
    "inout": inout,
    "no_dep": no_dep,
    "scalar": scalar,
}
DIRECTION_TO_NAME: dict[ir.ArgDirection, str] = {value: name for name, value in NAME_TO_DIRECTION.items()}

__all__ = [*NAME_TO_DIRECTION, "DIRECTION_TO_NAME", "NAME_TO_DIRECTION"]

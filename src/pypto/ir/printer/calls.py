"""Canonical text of calls: operators with their special forms, calls to functions of the program, submits.

A call is laid out as the pieces between its commas (`_joined`); special forms are a table from operator name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pypto.core.errors import InternalError
from pypto.ir.enums import MemorySpace
from pypto.ir.expr import Call, ConstBool, ConstFloat, ConstInt, Expr, GlobalVar, Submit, Var
from pypto.ir.printer.attributes import attrs_dict_text, kwarg_text, var_list_text
from pypto.ir.printer.expressions import LAYOUTS, Piece, call_head, op_name_text, short_text
from pypto.ir.printer.literals import float_literal
from pypto.ir.printer.state import State

DUMMY_OP = "system.task_dummy"
DUMMY_ATTRS = frozenset({"manual_dep_edges", "dummy_task"})
SHARD_OPS = frozenset({"tile.aiv_shard", "tile.aic_gather", "tensor.aiv_shard", "tensor.aic_gather"})

_SPACES = frozenset(space.value for space in MemorySpace)

Part = list[Piece]  # what stands between two commas


def _joined(head: str, parts: Iterable[Part], tail: str = ")") -> list[Piece]:
    pieces: list[Piece] = [head + "("]
    for part in parts:
        pieces += part
        pieces.append(", ")
    if len(pieces) > 1:
        pieces.pop()
    pieces.append(tail)
    return pieces


def _call(state: State, call: Call) -> list[Piece]:
    op = call.op
    if isinstance(op, GlobalVar) and state.in_program:
        return _function_call(state, call)
    special = SPECIAL_FORMS.get(op.name)
    if special is not None:
        pieces = special(state, call)
        if pieces is not None:
            return pieces
    head = call_head(state, op)
    if not call.kwargs_ and not call.attrs_:
        return _plain_call(state, head, call.args_)
    parts = [*_args(call.args_), *_kwargs(state, call), *_op_attrs(state, call)]
    return _joined(head, parts)


def _plain_call(state: State, head: str, args: tuple[Expr, ...]) -> list[Piece]:
    texts = [short_text(state, arg) for arg in args]
    if None not in texts:
        return [f"{head}({', '.join(texts)})"]  # type: ignore[arg-type]
    return _joined(head, _args(args))


def _args(args: Iterable[Expr]) -> list[Part]:
    return [[arg] for arg in args]


def _kwargs(state: State, call: Call, skip: str | None = None) -> list[Part]:
    name = call.op.name
    if state.split_aiv_depth and name in SHARD_OPS:
        skip = "split"
    return [[f"{k}={kwarg_text(state, name, k, v)}"] for k, v in call.kwargs_.items() if k != skip]


def _op_attrs(state: State, call: Call) -> list[Part]:
    attrs = call.attrs_
    if not attrs:
        return []
    for key in DUMMY_ATTRS:
        if key in attrs:
            raise InternalError(
                f"attribute '{key}' on '{call.op.name}' has no spelling; it belongs on {DUMMY_OP} only"
            )
    return [[f"attrs={attrs_dict_text(state, attrs.items())}"]]


def _function_call(state: State, call: Call) -> list[Piece]:
    attrs = dict(call.attrs_)
    if "manual_dep_edges" in attrs:
        raise InternalError(
            f"a call of '{call.op.name}' carries 'manual_dep_edges'; only a submit can have deps"
        )
    parts = _args(call.args_)
    parts += _kwargs(state, call)
    if isinstance(attrs.get("device"), Expr):
        parts.append(["device=", attrs.pop("device")])
    ordered: list[tuple[str, Any]] = []
    dumped = _dumped(call.args_, attrs.pop("dump_vars", ()))
    if dumped:
        ordered.append(("dump_vars", dumped))
    ordered += _directions(call, attrs)
    ordered += attrs.items()
    if ordered:
        parts.append([f"attrs={attrs_dict_text(state, ordered)}"])
    return _joined(call_head(state, call.op), parts)


def _dumped(args: tuple[Expr, ...], marked: tuple[Var, ...]) -> tuple[Var, ...]:
    """The marked variables that are arguments, in argument order."""
    ids = {id(var) for var in marked}
    return tuple(arg for arg in args if isinstance(arg, Var) and id(arg) in ids)


def _directions(call: Call | Submit, attrs: dict[str, Any]) -> list[tuple[str, Any]]:
    directions = attrs.pop("arg_directions", ())
    if not directions:
        return []
    if len(directions) != len(call.args_):
        raise InternalError(
            f"the dispatch of '{call.op.name}' has {len(directions)} directions "
            f"for {len(call.args_)} arguments"
        )
    return [("arg_directions", directions)]


def _submit(state: State, submit: Submit) -> list[Piece]:
    parts: list[Part] = [[call_head(state, submit.op)], *_args(submit.args_)]
    attrs = dict(submit.attrs_)
    if submit.deps_:
        parts.append([f"deps={var_list_text(state, submit.deps_)}"])
    dumped = _dumped(submit.args_, attrs.pop("dump_vars", ()))
    if dumped:
        parts.append([f"dumps={var_list_text(state, dumped)}"])
    parts += [[f"{k}={kwarg_text(state, submit.op.name, k, v)}"] for k, v in submit.kwargs_.items()]
    if submit.core_num is not None:
        parts.append(["core_num=", submit.core_num])
    if submit.sync_start:
        parts.append(["sync_start=True"])
    if submit.allow_early_resolve:
        parts.append(["allow_early_resolve=True"])
    if submit.predicate is not None:
        parts.append(["predicate=(", submit.predicate, ")"])
    ordered = [*_directions(submit, attrs), *attrs.items()]
    if ordered:
        parts.append([f"attrs={attrs_dict_text(state, ordered)}"])
    name = "submit" if submit.core_num is None else "spmd_submit"
    return _joined(f"{state.prefix}.{name}", parts)


def _bare_value(state: State, value: Expr) -> Piece:
    """A constant without `pl.const`: its dtype follows from a keyword or from the operator."""
    if isinstance(value, ConstInt):
        return str(value.value)
    if isinstance(value, ConstFloat):
        return float_literal(value.value)
    if isinstance(value, ConstBool):
        return str(value.value)
    return value


def _full(state: State, call: Call) -> list[Piece] | None:
    if len(call.args_) != 2:
        return None
    shape, value = call.args_
    parts: list[Part] = [[shape], *_kwargs(state, call), ["value=", _bare_value(state, value)]]
    return _joined(call_head(state, call.op), [*parts, *_op_attrs(state, call)])


def _tensor_add(state: State, call: Call) -> list[Piece] | None:
    if len(call.args_) != 2 or not isinstance(call.args_[1], ConstInt | ConstFloat):
        return None
    head = op_name_text(state, "tensor.adds")
    return _joined(head, [*_args(call.args_), *_kwargs(state, call), *_op_attrs(state, call)])


def _reinterpret_view(state: State, call: Call) -> list[Piece] | None:
    if "dtype" not in call.kwargs_:
        raise InternalError(f"{call.op.name} without a dtype")
    parts = [*_args(call.args_[:1]), *_kwargs(state, call)]
    if len(call.args_) > 1:
        parts.append(["shape=", call.args_[1]])
    return _joined(call_head(state, call.op), [*parts, *_op_attrs(state, call)])


def _alloc(state: State, call: Call) -> list[Piece] | None:
    first = call.args_[0] if call.args_ else None
    if not isinstance(first, ConstInt) or first.value not in _SPACES:
        return None
    space: Part = [f"{state.prefix}.Mem.{MemorySpace(first.value).name}"]
    parts = [space, *_args(call.args_[1:]), *_kwargs(state, call), *_op_attrs(state, call)]
    return _joined(call_head(state, call.op), parts)


def _syncall(state: State, call: Call) -> list[Piece] | None:
    if call.kwargs_.get("mode") != "soft" or not 1 <= len(call.args_) <= 2:
        return None
    core_type = call.kwargs_.get("core_type", "mix")
    used_cores: Piece = _bare_value(state, call.args_[1]) if len(call.args_) == 2 else "0"
    parts: list[Part] = [
        ['mode="soft"'],
        [f'core_type="{core_type}"'],
        ["gm_workspace=", call.args_[0]],
        ["used_cores=", used_cores],
    ]
    return _joined(call_head(state, call.op), [*parts, *_op_attrs(state, call)])


def _named_valid_shape(index: int) -> Callable[[State, Call], list[Piece] | None]:
    """The form of an operator whose last operand `index`, if it has that many, is its `valid_shape=`."""

    def form(state: State, call: Call) -> list[Piece] | None:
        if len(call.args_) != index + 1:
            return None
        parts: list[Part] = [*_args(call.args_[:index]), ["valid_shape=", call.args_[index]]]
        return _joined(call_head(state, call.op), [*parts, *_kwargs(state, call), *_op_attrs(state, call)])

    return form


def _mgather(state: State, call: Call) -> list[Piece] | None:
    extra = list(call.args_[2:])
    parts = _args(call.args_[:2])
    if call.kwargs_.get("coalesce") == 1 and extra:
        parts.append(["scratch=", extra.pop(0)])
    if extra:
        parts.append(["valid_shape=", extra.pop(0)])
    parts += _args(extra)
    return _joined(call_head(state, call.op), [*parts, *_kwargs(state, call), *_op_attrs(state, call)])


def _alloc_window_buffer(state: State, call: Call) -> list[Piece] | None:
    parts = [*_args(call.args_), *_kwargs(state, call, skip="name"), *_op_attrs(state, call)]
    return _joined(call_head(state, call.op), parts)


def _remote_load(state: State, call: Call) -> list[Piece] | None:
    if call.kwargs_.get("allow_physical_tail_padding") is not True:
        return None
    kwargs = _kwargs(state, call, skip="allow_physical_tail_padding")
    parts = [*_args(call.args_), *kwargs, *_op_attrs(state, call)]
    return _joined("pld.tile._remote_load_with_physical_tail_padding", parts)


def _task_dummy(state: State, call: Call) -> list[Piece] | None:
    deps = call.attrs_.get("manual_dep_edges", ())
    others = [(k, v) for k, v in call.attrs_.items() if k not in DUMMY_ATTRS]
    parts: list[Part] = [*_args(call.args_), *_kwargs(state, call), [f"deps={var_list_text(state, deps)}"]]
    if others:
        parts.append([f"attrs={attrs_dict_text(state, others)}"])
    return _joined(call_head(state, call.op), parts)


SPECIAL_FORMS: dict[str, Callable[[State, Call], list[Piece] | None]] = {
    "tile.full": _full,
    "tensor.full": _full,
    "tensor.add": _tensor_add,
    "tile.reinterpret_view": _reinterpret_view,
    "tensor.reinterpret_view": _reinterpret_view,
    "tile.alloc": _alloc,
    "tensor.alloc": _alloc,
    "system.syncall": _syncall,
    "tile.gather_row": _named_valid_shape(5),
    "tensor.gather_row": _named_valid_shape(5),
    "tile.tri": _named_valid_shape(2),
    "tile.random": _named_valid_shape(7),
    "tile.mgather": _mgather,
    "pld.tensor.alloc_window_buffer": _alloc_window_buffer,
    "pld.tile.remote_load": _remote_load,
    DUMMY_OP: _task_dummy,
}

LAYOUTS[Call] = _call
LAYOUTS[Submit] = _submit

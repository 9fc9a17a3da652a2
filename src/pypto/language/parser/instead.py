"""What to write instead of the parts of Python that a DSL body does not have."""

from __future__ import annotations

import ast

_EXPRESSIONS: dict[type[ast.expr], str] = {
    ast.JoinedStr: "Text is only for pl.static_print(...)",
    ast.Lambda: "Define a helper with @pl.inline outside the program, and call it by name",
    ast.IfExp: "Write an if statement that assigns the name in both branches",
    ast.ListComp: "Write a loop: for i in pl.unroll(n):",
    ast.GeneratorExp: "Write a loop: for i in pl.unroll(n):",
    ast.Dict: "Use one name per value",
    ast.NamedExpr: "Assign the name in a statement of its own",
    ast.Starred: "Write the arguments out",
    ast.Yield: "Values leave a loop or branch with pl.yield_(...), a function with return",
}
_STATEMENTS: dict[type[ast.stmt], str] = {
    ast.FunctionDef: "Define a helper with @pl.inline outside the program, and call it by name",
    ast.ClassDef: "Define it outside the function",
    ast.Import: "Import outside the function; values of Python names are captured",
    ast.ImportFrom: "Import outside the function; values of Python names are captured",
    ast.Assert: "What is known while parsing is checked with pl.static_assert(condition, 'message')",
    ast.Try: "Nothing raises in a kernel; check what is known while parsing with pl.static_assert(...)",
    ast.Raise: "Check what is known while parsing with pl.static_assert(condition, 'message')",
    ast.Delete: "Leave it out: a value lives as long as it is used",
    ast.Global: "Pass values as parameters, and return results",
    ast.Nonlocal: "Pass values as parameters, and return results",
}
_LOOPS = ("range", "parallel", "unroll", "pipeline", "while_", "split_aiv")
_SCOPES = ("at", "cluster", "spmd", "scope", "manual_scope")
_CONSTRUCTS: dict[str, str] = {
    **dict.fromkeys(_LOOPS, "pl.{0}(...) is the iterator of a loop: for i in pl.{0}(...):"),
    **dict.fromkeys(_SCOPES, "pl.{0}(...) opens a scope: with pl.{0}(...):"),
    **dict.fromkeys(("static_print", "static_assert", "func_attr"), "pl.{0}(...) is a statement of its own"),
    **dict.fromkeys(("split", "cross_core_slot"), "pl.{0}(...) belongs into optimizations=[...] of a scope"),
    "while_": "pl.while_ is the iterator of a loop: for (a,) in pl.while_(init_values=(x,)):",
    "cond": "pl.cond(condition) is the first statement of a pl.while_ loop",
    "dynamic": "Declare symbols before the function: M = pl.dynamic('M')",
    "no_dep": "pl.no_dep(tensor) marks an argument of a kernel call",
    "dump_tag": "pl.dump_tag(tensor) is a statement of its own",
}
_REDUCTION = "pl.row_{0}(x) or pl.col_{0}(x); a tile wants a scratch tile too: pl.row_{0}(tile, tmp)"
_FILLED = "pl.full(shape, dtype=pl.FP32, value={0})"
_RESHAPED = "pl.reshape(x, shape)"
_COMPARED = "pl.cmp(a, b, cmp_type=...) with 0 ==, 1 !=, 2 <, 3 <=, 4 >, 5 >="
_FOREIGN_NAMES: dict[str, str] = {  # how what array libraries call by another name is written
    **{name: _REDUCTION.format(name) for name in ("sum", "max", "min", "prod", "argmax", "argmin")},
    "amax": _REDUCTION.format("max"),
    "amin": _REDUCTION.format("min"),
    "mean": "pl.mul(pl.row_sum(x), 1.0 / n) for rows of n elements",
    "softmax": "pl.row_max, pl.row_expand_sub, pl.exp, pl.row_sum and pl.row_expand_div, one after the other",
    "where": "pl.sel(mask, a, b, tmp) with a mask from pl.cmp(a, b), on tiles",
    **dict.fromkeys(("dot", "mm", "inner", "vdot", "tensordot", "bmm", "linear"), "pl.matmul(a, b)"),
    **dict.fromkeys(("zeros", "zeros_like"), _FILLED.format("0.0")),
    **dict.fromkeys(("ones", "ones_like"), _FILLED.format("1.0")),
    "full_like": _FILLED.format("..."),
    **dict.fromkeys(("empty", "empty_like"), "pl.create_tensor(shape, dtype=pl.FP32)"),
    **dict.fromkeys(("clip", "clamp"), "pl.minimum(pl.maximum(x, low), high)"),
    "sigmoid": "pl.recip(pl.add(pl.exp(pl.neg(x)), 1.0))",
    "silu": "pl.div(x, pl.add(pl.exp(pl.neg(x)), 1.0))",
    "tanh": "pl.sub(pl.mul(pl.recip(pl.add(pl.exp(pl.mul(x, -2.0)), 1.0)), 2.0), 1.0)",
    **dict.fromkeys(("square", "pow", "power"), "pl.mul(x, x)"),
    "multiply": "pl.mul(a, b)",
    "subtract": "pl.sub(a, b)",
    **dict.fromkeys(("divide", "true_divide"), "pl.div(a, b)"),
    **dict.fromkeys(("mod", "remainder"), "pl.fmod(a, b)"),
    "negative": "pl.neg(x)",
    "absolute": "pl.abs(x)",
    "reciprocal": "pl.recip(x)",
    **dict.fromkeys(("astype", "to", "float", "half"), "pl.cast(x, pl.FP32)"),
    **dict.fromkeys(("permute", "swapaxes", "t"), "pl.transpose(x, axis1, axis2)"),
    **dict.fromkeys(("view", "flatten", "ravel", "squeeze", "unsqueeze", "expand_dims"), _RESHAPED),
    **dict.fromkeys(("concatenate", "cat", "hstack", "vstack", "stack"), "pl.concat(a, b)"),
    **dict.fromkeys(("equal", "eq", "not_equal", "ne", "greater", "gt", "ge", "less", "lt", "le"), _COMPARED),
}


def instead_of_foreign(name: str) -> str | None:
    """What to write for a function that array libraries have under this name."""
    text = _FOREIGN_NAMES.get(name)
    return None if text is None else f"Write {text}"


def instead_of_construct(name: str) -> str | None:
    """What to write where `pl.name(...)`, which is no operation, was used as one."""
    text = _CONSTRUCTS.get(name)
    return None if text is None else text.format(name)


def instead_of_expression(node: ast.expr) -> str:
    """What to write instead of an expression of this kind."""
    default = "Use names, constants, scalar operators, subscripts, tuples and pl.* operations"
    return _EXPRESSIONS.get(type(node), default)


def instead_of_statement(node: ast.stmt) -> str:
    """What to write instead of a statement of this kind."""
    if isinstance(node, ast.AugAssign):
        value = ast.unparse(ast.BinOp(node.target, node.op, node.value))
        return f"Write {ast.unparse(node.target)} = {value}; tensors and tiles are added with pl.add(...)"
    default = "A DSL body has assignments, pl operations, for/while/if, with scopes and return"
    return _STATEMENTS.get(type(node), default)

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

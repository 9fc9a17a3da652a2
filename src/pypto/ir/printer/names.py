"""Which name each variable prints under, which symbols a program declares, and in which order functions
print.

Names are hints, so two variables may carry the same one. Per printed function every variable gets its own
text: definitions come first, in the order of a preorder walk, then variables in order of first use; a hint
that several carry stays with the first of them and gets `_1`, `_2`, ... for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from pypto.ir.expr import Call, ConstInt, Expr, GlobalVar, IterArg, Submit, Var
from pypto.ir.node import IRNode, attr_references
from pypto.ir.program import Function, Program
from pypto.ir.stmt import AssignStmt, ForStmt, IfStmt, WhileStmt
from pypto.ir.types import ArrayType, ScalarType, ShapedType, TensorType, TileType, TupleType, Type

__all__ = [
    "FunctionVars",
    "TypeSymbols",
    "assign_names",
    "body_vars",
    "declared_symbols",
    "function_names",
    "function_order",
    "function_vars",
]

FREE_SUFFIX = "__FREE_VAR"


@dataclass(frozen=True, slots=True)
class BodyVars:
    """The variables of one statement tree, each list without repetitions and in order of appearance."""

    defined: list[Var]
    used: list[Var]
    callees: list[str]


class TypeSymbols:
    """The variables inside the extents and views of types, computed once per type object."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[
            int, tuple[Type, dict[int, Var]]
        ] = {}  # the type is held so that its id stays its own

    def of(self, type_: Type) -> dict[int, Var]:
        """By variable id, in order of appearance."""
        if type(type_) is ScalarType:
            return _NO_SYMBOLS
        known = self._known.get(id(type_))
        if known is None:
            exprs = list(_extents(type_))
            known = self._known[id(type_)] = (type_, _vars_below(exprs) if exprs else _NO_SYMBOLS)
        return known[1]

    def of_signature(self, function: Function) -> dict[int, Var]:
        """Those of all parameter and return types."""
        found: dict[int, Var] = {}
        for type_ in (*(param.type for param in function.params_), *function.return_types_):
            found.update(self.of(type_))
        return found

    def of_variables(self, variables: Iterable[Var]) -> dict[int, Var]:
        """Those of the types of `variables`."""
        found: dict[int, Var] = {}
        for var in variables:
            symbols = self.of(var.type)
            if symbols:
                found.update(symbols)
        return found


_NO_SYMBOLS: dict[int, Var] = {}


@dataclass(frozen=True, slots=True)
class FunctionVars:
    """What one function defines and mentions. Symbols are the variables inside types, by id."""

    body: BodyVars
    signature_symbols: dict[int, Var]
    body_symbols: dict[int, Var]


def function_vars(function: Function, types: TypeSymbols) -> FunctionVars:
    """The variables of a function's signature, body and attributes."""
    body = body_vars(function.body, *attr_references(function.attrs_))
    symbols = types.of_variables(body.defined)
    symbols.update(types.of_variables(body.used))
    return FunctionVars(body, types.of_signature(function), symbols)


def body_vars(*roots: IRNode) -> BodyVars:
    """Definitions, uses and callees below `roots`."""
    defined: dict[int, Var] = {}
    used: dict[int, Var] = {}
    callees: dict[str, None] = {}
    stack: list[IRNode] = list(reversed(roots))
    while stack:
        node = stack.pop()
        cls = type(node)
        if cls is Var or cls is IterArg:
            used.setdefault(id(node), node)  # type: ignore[arg-type]
        elif cls is AssignStmt:
            var = node.var  # type: ignore[attr-defined]
            defined.setdefault(id(var), var)
            stack.append(node.value)  # type: ignore[attr-defined]
        elif cls in _DEFINING:
            variables = _DEFINING[cls](node)
            ids = {id(var) for var in variables}
            for var in variables:
                defined.setdefault(id(var), var)
            stack += [child for child in reversed(node._children()) if id(child) not in ids]
        elif cls is not ConstInt:
            if (cls is Call or cls is Submit) and isinstance(node.op, GlobalVar):  # type: ignore[attr-defined]
                callees.setdefault(node.op.name)  # type: ignore[attr-defined]
            stack += reversed(node._children())
    return BodyVars(list(defined.values()), list(used.values()), list(callees))


_DEFINING: dict[type, Callable[..., tuple[Var, ...]]] = {
    ForStmt: lambda loop: (loop.loop_var, *loop.return_vars_, *loop.iter_args_),
    WhileStmt: lambda loop: (*loop.return_vars_, *loop.iter_args_),
    IfStmt: lambda branch: branch.return_vars_,
}


def assign_names(variables: Iterable[Var], reserved: Iterable[str] = ()) -> dict[int, str]:
    """A distinct name for each variable, by id. `reserved` names are left to others."""
    listed = list({id(var): var for var in variables}.values())
    taken = {var.name_hint for var in listed} | set(reserved)
    free_hints = taken.difference(reserved)
    counters: dict[str, int] = {}
    names: dict[int, str] = {}
    for var in listed:
        hint = var.name_hint
        if hint in free_hints:
            free_hints.discard(hint)
            names[id(var)] = hint
            continue
        count = counters.get(hint, 0) + 1
        while f"{hint}_{count}" in taken:
            count += 1
        counters[hint] = count
        names[id(var)] = f"{hint}_{count}"
        taken.add(names[id(var)])
    return names


def function_names(function: Function, variables: FunctionVars, declared: dict[int, str]) -> dict[int, str]:
    """The names that one function prints with. `declared`: the symbols that the program declares, by id."""
    body, signature = variables.body, variables.signature_symbols
    symbols = {**signature, **variables.body_symbols}
    here = {i: declared[i] for i in (*symbols, *map(id, body.used)) if i in declared} if declared else {}
    candidates = (*function.params_, *body.defined, *body.used, *symbols.values())
    reserved = [*here.values(), *(declared.values() if _mentions_later_parameter(function) else ())]
    names = assign_names([var for var in candidates if id(var) not in here], reserved)
    names.update(here)
    bound = {id(var) for var in (*function.params_, *body.defined)}.union(signature, here)
    for var in body.used:
        if id(var) not in bound:
            names[id(var)] += FREE_SUFFIX
    return names


def _mentions_later_parameter(function: Function) -> bool:
    """Whether a type mentions a scalar parameter that follows: then it must not be named like a symbol."""
    later = {id(param) for param in function.params_ if type(param.type) is ScalarType}
    for param in function.params_ if later else ():
        later.discard(id(param))
        if not later.isdisjoint(_vars_below(list(_extents(param.type)))):
            return True
    return False


def declared_symbols(program: Program, variables: dict[str, FunctionVars]) -> dict[int, str]:
    """The names of the symbols that stand for extents and are bound by no function, by id.

    A parameter that another parameter's valid shape reads is declared too: annotations are evaluated before
    parameters exist.
    """
    found: dict[int, Var] = {}
    for each in variables.values():
        found.update(each.signature_symbols)
        found.update(each.body_symbols)
    if not found:
        return {}
    bound: set[int] = set()
    needed: set[int] = set()
    for name, function in program.functions_.items():
        params = {id(param) for param in function.params_}
        for param in function.params_:
            needed.update(params.intersection(_valid_shape_symbols(param.type)))
        bound.update(params, (id(var) for var in variables[name].body.defined))
    return assign_names([var for i, var in found.items() if i not in bound or i in needed])


def function_order(program: Program, variables: dict[str, FunctionVars]) -> list[Function]:
    """Callees before callers, both in name order; plain name order when calls form a cycle."""
    functions = program.functions_
    callees = {name: sorted(c for c in variables[name].body.callees if c in functions) for name in functions}
    order: list[Function] = []
    state: dict[str, bool] = {}  # False while the callees are being placed, True when placed
    for root in functions:
        if root in state:
            continue
        state[root] = False
        stack: list[tuple[str, Iterator[str]]] = [(root, iter(callees[root]))]
        while stack:
            name, remaining = stack[-1]
            callee = next(remaining, None)
            if callee is None:
                stack.pop()
                state[name] = True
                order.append(functions[name])
            elif callee not in state:
                state[callee] = False
                stack.append((callee, iter(callees[callee])))
            elif not state[callee]:
                return list(functions.values())
    return order


def _extents(type_: Type) -> Iterator[Expr]:
    if isinstance(type_, TupleType):
        for each in type_.types_:
            yield from _extents(each)
    elif isinstance(type_, ShapedType) and not isinstance(type_, ArrayType):
        yield from (dim for dim in type_.shape_ if type(dim) is not ConstInt)
        yield from _view_exprs(type_)


def _view_exprs(type_: ShapedType) -> Iterator[Expr]:
    if isinstance(type_, TensorType):
        if type_.tensor_view is not None:
            yield from (*type_.tensor_view.valid_shape_, *type_.tensor_view.stride_)
    elif isinstance(type_, TileType) and type_.tile_view is not None:
        view = type_.tile_view
        yield from (*view.valid_shape_, *view.stride_)
        if view.start_offset is not None:
            yield view.start_offset


def _valid_shape_symbols(type_: Type) -> dict[int, Var]:
    if isinstance(type_, TensorType) and type_.tensor_view is not None:
        return _vars_below(list(type_.tensor_view.valid_shape_))
    return {}


def _vars_below(exprs: list[Expr]) -> dict[int, Var]:
    found: dict[int, Var] = {}
    stack: list[IRNode] = list(reversed(exprs))
    while stack:
        node = stack.pop()
        if isinstance(node, Var):
            found.setdefault(id(node), node)
        else:
            stack.extend(reversed(node._children()))
    return found

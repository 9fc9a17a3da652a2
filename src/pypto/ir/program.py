"""Functions and programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pypto.core.errors import internal_error
from pypto.core.span import Span
from pypto.ir.attrs import AttrDict, normalise_attrs, read_back
from pypto.ir.enums import FunctionType, Level, ParamDirection, Role, SplitMode
from pypto.ir.expr import GlobalVar, Var
from pypto.ir.node import (
    ATTRS,
    FUNCTIONS,
    NODES,
    TYPES,
    VALUE,
    VALUES,
    Field,
    IRNode,
    define,
    expect,
    expect_all,
    ignore,
    use,
)  # fmt: skip
from pypto.ir.stmt import Stmt
from pypto.ir.types import Type

_DERIVED_PLACE = {
    FunctionType.Orchestration: (Level.CHIP, Role.Orchestrator),
    FunctionType.Graph: (Level.CHIP, Role.Orchestrator),
    FunctionType.InCore: (Level.CHIP_DIE, Role.SubWorker),
    FunctionType.AIC: (Level.AIC, Role.SubWorker),
    FunctionType.AIV: (Level.AIV, Role.SubWorker),
    FunctionType.Group: (Level.CORE_GROUP, Role.SubWorker),
}


class Function(IRNode):
    """A named body with parameters, each with a direction, and result types."""

    __slots__ = (
        "attrs_",
        "body",
        "func_type",
        "level",
        "name",
        "param_directions_",
        "params_",
        "requires_runtime_binding",
        "return_types_",
        "role",
    )
    FIELDS = (
        define("params", NODES),
        use("param_directions", VALUES),
        use("func_type", VALUE),
        use("level", VALUE),
        use("role", VALUE),
        use("attrs", ATTRS),
        use("requires_runtime_binding", VALUE),
        use("return_types", TYPES),
        use("body"),
        ignore("name"),
    )
    VISIT_ORDER = ("params", "attrs", "body")
    REWRITE_ORDER = ("params", "return_types", "body", "attrs")

    params_: tuple[Var, ...]
    param_directions_: tuple[ParamDirection, ...]
    func_type: FunctionType
    level: Level | None
    role: Role | None
    attrs_: AttrDict
    requires_runtime_binding: bool
    return_types_: tuple[Type, ...]
    body: Stmt
    name: str

    def __init__(
        self,
        name: str,
        params: Sequence[Var | tuple[Var, ParamDirection]],
        return_types: Sequence[Type],
        body: Stmt,
        span: Span,
        type: FunctionType = FunctionType.Opaque,
        level: Level | None = None,
        role: Role | None = None,
        attrs: Any = None,
        requires_runtime_binding: bool = False,
    ) -> None:
        expect(name, str, "Function.name")
        expect(body, Stmt, "Function.body")
        expect(span, Span, "Function.span")
        expect(type, FunctionType, "Function.type")
        if level is not None:
            expect(level, Level, "Function.level")
        if role is not None:
            expect(role, Role, "Function.role")
        expect(requires_runtime_binding, bool, "Function.requires_runtime_binding")
        variables, directions = _split_params(params)
        level, role = _place(name, type, level, role)
        self._fill(
            variables, directions, type, level, role, normalise_attrs("Function", attrs),
            requires_runtime_binding, expect_all(return_types, Type, "Function.return_types"), body,
            name, span,
        )  # fmt: skip

    @property
    def params(self) -> list[Var]:
        return list(self.params_)

    @property
    def param_directions(self) -> list[ParamDirection]:
        return list(self.param_directions_)

    @property
    def return_types(self) -> list[Type]:
        return list(self.return_types_)

    @property
    def attrs(self) -> AttrDict:
        return read_back(self.attrs_)

    @property
    def split(self) -> SplitMode | None:
        """The cross-core split, None when there is none. A malformed attribute raises on reading."""
        value = self.attrs_.get("split", 0)
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"attrs['split'] of '{self.name}' must be an int, got {type(value).__name__}")
        if value not in (0, 1, 2):
            raise ValueError(f"attrs['split'] of '{self.name}' must be 0, 1 or 2, got {value}")
        return SplitMode(value) if value else None

    def replace(self, **changes: Any) -> Function:
        """As for any node; `params` may carry directions, and a new `func_type` (or `type`) derives its
        place anew."""
        if "type" in changes:
            changes["func_type"] = changes.pop("type")
        if any(isinstance(param, tuple) for param in changes.get("params", ())):
            changes["params"], changes["param_directions"] = _split_params(changes["params"])
        func_type = changes.get("func_type", self.func_type)
        if func_type is not self.func_type:
            keeps = func_type not in _DERIVED_PLACE and self.func_type not in _DERIVED_PLACE
            level = changes.get("level", self.level if keeps else None)
            role = changes.get("role", self.role if keeps else None)
            changes["level"], changes["role"] = _place(self.name, func_type, level, role)
        return super().replace(**changes)


def _split_params(
    params: Sequence[Var | tuple[Var, ParamDirection]],
) -> tuple[tuple[Var, ...], tuple[ParamDirection, ...]]:
    if not isinstance(params, (list, tuple)):
        raise TypeError(f"Function.params must be a sequence, got {type(params).__name__}")
    variables, directions = [], []
    for position, param in enumerate(params):
        var: Any = param
        direction: Any = ParamDirection.In
        if isinstance(param, tuple):
            if len(param) != 2:
                raise TypeError(
                    f"Function.params[{position}] must be (Var, ParamDirection), got {len(param)} items"
                )
            var, direction = param
        expect(var, Var, f"Function.params[{position}]")
        expect(direction, ParamDirection, f"The direction of Function.params[{position}]")
        variables.append(var)
        directions.append(direction)
    return tuple(variables), tuple(directions)


def _place(
    name: str, func_type: FunctionType, level: Level | None, role: Role | None
) -> tuple[Level | None, Role | None]:
    """Level and role of a function: implied by most function types, as given for the others."""
    implied = _DERIVED_PLACE.get(func_type)
    if implied is None:
        return level, role
    for what, given, derived in (("level", level, implied[0]), ("role", role, implied[1])):
        if given is not None and given is not derived:
            raise ValueError(
                f"Function '{name}' of type {func_type.name} implies {what} {derived.name}, "
                f"but {given.name} was given"
            )
    return implied


class Program(IRNode):
    """Functions that may call one another, ordered by name."""

    __slots__ = ("functions_", "global_vars", "name")
    FIELDS = (ignore("name"), use("functions", FUNCTIONS))

    name: str
    functions_: dict[str, Function]
    global_vars: dict[str, GlobalVar]

    def __init__(self, functions: Sequence[Function], name: str, span: Span) -> None:
        expect(name, str, "Program.name")
        expect(span, Span, "Program.span")
        table: dict[str, Function] = {}
        for function in functions:
            if function is None:
                raise internal_error("Program: a function is None", span)
            expect(function, Function, "Program.functions")
            if not function.name:
                raise internal_error("Program: a function has an empty name", span)
            if function.name in table:
                raise ValueError(f"Program '{name}' has two functions named '{function.name}'")
            table[function.name] = function
        self._fill(name, {key: table[key] for key in sorted(table)}, span)
        _set_global_vars(self, {key: GlobalVar(key) for key in self.functions_})

    @property
    def functions(self) -> dict[GlobalVar, Function]:
        return {self.global_vars[name]: function for name, function in self.functions_.items()}

    def get_function(self, name: str) -> Function | None:
        return self.functions_.get(name)

    def get_global_var(self, name: str) -> GlobalVar | None:
        return self.global_vars.get(name)

    def __getitem__(self, name: str) -> Function | None:
        expect(name, str, "The key of a Program")  # an int would make iteration over a Program endless
        return self.functions_.get(name)

    def _stored_form(self, field: Field, value: Any) -> Any:
        if field.kind != FUNCTIONS:
            return super()._stored_form(field, value)
        functions = list(value.values()) if isinstance(value, Mapping) else list(value)
        present = list(self.functions_.values())
        if len(functions) == len(present) and all(a is b for a, b in zip(functions, present, strict=True)):
            return self.functions_
        return {
            function.name: function
            for function in Program(functions, self.name, self.span).functions_.values()
        }

    def _rebuilt(self, values: Sequence[Any]) -> Program:
        name, functions, span = values
        program = Program.make(name, functions, span)
        kept = self.global_vars
        _set_global_vars(program, {key: kept.get(key) or GlobalVar(key) for key in functions})
        return program


_set_global_vars = Program.__dict__["global_vars"].__set__

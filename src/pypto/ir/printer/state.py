"""What one printing run knows: the options, the names of variables and the indentation.

The rooms of the printer (types, expressions, attributes, statements, programs) are tables from node class to
a function of (state, node). They share this object and nothing else.
"""

from __future__ import annotations

from pypto.core.dtype import ALL_DTYPES, DataType
from pypto.ir.expr import Var
from pypto.ir.types import Type

__all__ = ["INDENT", "State"]

INDENT = "    "


class State:
    """Options and names of one printing run; `lines` collects the output of statement printers."""

    __slots__ = (
        "concise",
        "const_trees",
        "defined",
        "dtypes",
        "explicit_layout",
        "in_program",
        "in_signature",
        "lines",
        "names",
        "prefix",
        "split_aiv_depth",
        "type_texts",
    )

    def __init__(self, prefix: str = "pl", concise: bool = False, explicit_layout: bool = False) -> None:
        self.prefix = prefix
        self.concise = concise
        self.explicit_layout = explicit_layout
        self.dtypes = {dtype: f"{prefix}.{dtype.member}" for dtype in ALL_DTYPES}
        self.names: dict[int, str] = {}  # id of a variable -> printed name; absent: its hint
        self.defined: frozenset[int] = frozenset()  # ids of the variables that the printed body defines
        self.in_program = False
        self.in_signature = False
        self.split_aiv_depth = 0  # enclosing printed split_aiv regions
        self.lines: list[str] = []
        self.type_texts: dict[
            int, tuple[Type, str]
        ] = {}  # by id; the type is held so that the id stays its own
        self.const_trees: dict[int, bool] = {}  # binary node id -> are all its leaves integer constants

    def dtype(self, dtype: DataType) -> str:
        """`pl.FP32`."""
        return self.dtypes[dtype]

    def name(self, var: Var) -> str:
        """The printed name of a variable."""
        return self.names.get(id(var)) or var.name_hint

    def enter_function(self, names: dict[int, str], defined: frozenset[int]) -> None:
        """Switch to the names of another function (or statement root); cached type texts depend on them."""
        self.names = names
        self.defined = defined
        self.type_texts = {}

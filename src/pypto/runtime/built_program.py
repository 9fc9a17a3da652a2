"""What every compiled program says of itself, whatever runs it: its directory and its signature."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pypto import ir
from pypto.runtime.metadata import CallSignature, ParamInfo


class BuiltProgram(ABC):
    """A program in a build directory; usable as the path of that directory."""

    kind: str
    output_dir: Path
    platform: str

    @property
    @abstractmethod
    def signature(self) -> CallSignature:
        """Parameters and number of results, as the user wrote them."""

    @property
    def param_names(self) -> list[str]:
        return [p.name for p in self.signature.params]

    @property
    def output_indices(self) -> list[int]:
        """Places of the pure outputs."""
        return self.signature.output_indices

    @property
    def has_return(self) -> bool:
        return self.signature.has_return

    def _get_metadata(self) -> tuple[list[ParamInfo], list[int], list[ir.Type]]:
        """Parameters, places of pure outputs, return types (unknown without the program)."""
        return list(self.signature.params), self.signature.output_indices, []

    def _refuse_keywords(self, keywords: Mapping[str, Any]) -> None:
        if keywords:
            raise TypeError(
                f"{self.kind} got an unexpected keyword argument '{next(iter(keywords))}'; arguments are "
                f"given by position, config= alone by keyword. Parameters: {self.param_names}"
            )

    def __str__(self) -> str:
        return str(self.output_dir)

    def __repr__(self) -> str:
        return f"{self.kind}({self.output_dir})"

    def __fspath__(self) -> str:
        return str(self.output_dir)

"""Test data by description: how a tensor or scalar argument of a test run is made."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pypto.core.dtype import DataType
from pypto.runtime.array_types import numpy_dtype

__all__ = ["ScalarSpec", "TensorSpec"]


@dataclass
class TensorSpec:
    """A tensor. `dtype` is a torch dtype (makes torch tensors), a numpy dtype or a `DataType` (numpy arrays).

    `init_value` is None (zeros), a number, an array, one of the `zeros`, `ones`, `rand`, `randn` functions of
    the array library, or a function without arguments that returns an array.
    """

    name: str
    shape: Sequence[int]
    dtype: Any
    init_value: Any = None
    is_output: bool = False

    def create_tensor(self) -> Any:
        """The array."""
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(self.dtype, torch.dtype):
            return self._create_torch(torch)
        dtype = numpy_dtype(self.dtype) if isinstance(self.dtype, DataType) else np.dtype(self.dtype)
        shape, value = tuple(self.shape), self.init_value
        if value is None:
            return np.zeros(shape, dtype)
        if isinstance(value, bool | int | float | np.generic):
            return np.full(shape, value, dtype)
        if value is np.zeros or value is np.ones:
            return value(shape, dtype=dtype)
        return np.asarray(value() if callable(value) else value).astype(dtype)

    def _create_torch(self, torch: Any) -> Any:
        shape, value = tuple(self.shape), self.init_value
        if value is None:
            return torch.zeros(shape, dtype=self.dtype)
        if isinstance(value, bool | int | float):
            return torch.full(shape, value, dtype=self.dtype)
        if any(value is known for known in (torch.randn, torch.rand, torch.zeros, torch.ones)):
            return value(shape, dtype=self.dtype)
        made = value() if callable(value) else value
        return torch.as_tensor(made).to(self.dtype)


@dataclass
class ScalarSpec:
    """A scalar argument; `ctype` names its C type ("int64", "float", ...)."""

    name: str
    value: Any
    ctype: str = "int64"

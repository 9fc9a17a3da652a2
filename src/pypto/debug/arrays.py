"""Torch tensors as numpy arrays over the same memory, and back. Torch is imported only when one is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

_WITHOUT_NUMPY_TYPE: dict[str, tuple[str, Any]] = {
    "torch.bfloat16": ("int16", ml_dtypes.bfloat16),
    "torch.float8_e4m3fn": ("uint8", ml_dtypes.float8_e4m3fn),
    "torch.float8_e5m2": ("uint8", ml_dtypes.float8_e5m2),
    "torch.float8_e8m0fnu": ("uint8", ml_dtypes.float8_e8m0fnu),
}
"""Torch element types that numpy lacks: the torch type of the same bits, and the extension type."""


def _is_torch(value: Any) -> bool:
    return hasattr(value, "data_ptr") and hasattr(value, "untyped_storage")


def as_numpy(value: Any) -> Any:
    """A tensor as an array over its memory; anything else as it is."""
    if not _is_torch(value):
        return value
    import torch

    plain = value.detach()
    known = _WITHOUT_NUMPY_TYPE.get(str(value.dtype))
    if known is None:
        return plain.numpy()
    bits, extension = known
    return plain.view(getattr(torch, bits)).numpy().view(extension)


def as_given(result: Any, arrays: Sequence[Any], given: Sequence[Any]) -> Any:
    """A result in the form in which arguments were given: the argument itself, or a tensor for tensors."""
    for array, original in zip(arrays, given, strict=True):
        if result is array:
            return original
    if not isinstance(result, np.ndarray) or not any(_is_torch(each) for each in given):
        return result
    import torch

    for name, (bits, extension) in _WITHOUT_NUMPY_TYPE.items():
        if result.dtype == extension:
            return torch.from_numpy(result.view(bits)).view(getattr(torch, name.removeprefix("torch.")))
    return torch.from_numpy(result)


def as_float_array(value: Any) -> np.ndarray[Any, Any]:
    """A numpy or torch array as one that numpy computes with."""
    array = np.asarray(as_numpy(value))
    return array if array.dtype.kind in "biu" else array.astype(np.float64)

"""What callbacks of SubWorkers use to see their arguments as torch tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from pypto.runtime.array_types import dtype_name

__all__ = ["_tensor_from_continuous"]


def _tensor_from_continuous(argument: Any) -> Any:
    """The torch tensor over the memory of an argument; writing to it writes the argument."""
    import torch  # type: ignore[import-not-found]

    if not isinstance(argument, np.ndarray):
        return argument
    name = dtype_name(argument.dtype)
    if not name.startswith(("bfloat", "float8")):
        return torch.from_numpy(argument)
    bits = argument.view(np.int16 if argument.itemsize == 2 else np.uint8)  # numpy has no name for the type
    return torch.from_numpy(bits).view(getattr(torch, name))

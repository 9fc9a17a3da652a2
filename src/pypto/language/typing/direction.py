"""Parameter directions. Subscripting gives the inner annotation back: the direction is read from the
source."""

from __future__ import annotations

from typing import Any


class Out:
    """`Out[T]`: the function writes this parameter and does not read it."""

    def __class_getitem__(cls, item: Any) -> Any:
        return item


class InOut:
    """`InOut[T]`: the function reads and writes this parameter."""

    def __class_getitem__(cls, item: Any) -> Any:
        return item

"""From bytes to plain maps, lists and numbers, whatever the depth.

The msgpack library decodes quickly but gives up at a nesting that deep expressions exceed; then a decoder
with an explicit stack takes over.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import msgpack  # type: ignore[import-untyped]

__all__ = ["decode"]


def decode(data: bytes) -> Any:
    """The first object in `data`; what follows it is ignored. Raises `RuntimeError` for malformed bytes."""
    try:
        unpacker = msgpack.Unpacker(raw=False, strict_map_key=False, max_buffer_size=max(len(data), 1))
        unpacker.feed(data)
        return unpacker.unpack()
    except msgpack.exceptions.StackError:
        return _Decoder(data).decode()
    except msgpack.exceptions.OutOfData as error:
        raise RuntimeError(
            f"Serialized data ends early: {len(data)} bytes hold no complete object"
        ) from error
    except Exception as error:
        raise RuntimeError(f"Serialized data is malformed: {error}") from error


_NUMBERS: dict[int, tuple[str, int]] = {
    0xCA: (">f", 4),
    0xCB: (">d", 8),
    0xCC: (">B", 1),
    0xCD: (">H", 2),
    0xCE: (">I", 4),
    0xCF: (">Q", 8),
    0xD0: (">b", 1),
    0xD1: (">h", 2),
    0xD2: (">i", 4),
    0xD3: (">q", 8),
}
_CONSTANTS: dict[int, Any] = {0xC0: None, 0xC2: False, 0xC3: True}
_STRINGS = {0xD9: (">B", 1), 0xDA: (">H", 2), 0xDB: (">I", 4)}
_ARRAYS = {0xDC: (">H", 2), 0xDD: (">I", 4)}
_MAPS = {0xDE: (">H", 2), 0xDF: (">I", 4)}


class _Decoder:
    """Decodes without recursion: a stack of containers that still lack entries."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def decode(self) -> Any:
        result: list[Any] = []
        open_containers: list[tuple[Callable[[Any], None], int]] = [(result.append, 1)]
        while open_containers:
            add, missing = open_containers.pop()
            if missing == 0:
                continue
            open_containers.append((add, missing - 1))
            value, entries = self._next()
            add(value)
            if isinstance(value, list):
                open_containers.append((value.append, entries))
            elif isinstance(value, dict):
                open_containers.append((_map_filler(value), 2 * entries))
        return result[0]

    def _next(self) -> tuple[Any, int]:
        """The next value; for a container an empty one, with the number of its entries."""
        tag = self._take(1)[0]
        if tag <= 0x7F:
            return tag, 0
        if tag <= 0x8F:
            return {}, tag & 0x0F
        if tag <= 0x9F:
            return [], tag & 0x0F
        if tag <= 0xBF:
            return self._string(tag & 0x1F), 0
        if tag >= 0xE0:
            return tag - 0x100, 0
        if tag in _CONSTANTS:
            return _CONSTANTS[tag], 0
        if tag in _NUMBERS:
            return self._number(*_NUMBERS[tag]), 0
        if tag in _STRINGS:
            return self._string(self._number(*_STRINGS[tag])), 0
        if tag in _ARRAYS:
            return [], self._number(*_ARRAYS[tag])
        if tag in _MAPS:
            return {}, self._number(*_MAPS[tag])
        raise RuntimeError(f"Serialized data is malformed: unexpected byte {tag:#x} at {self._at - 1}")

    def _take(self, count: int) -> bytes:
        chunk = self._data[self._at : self._at + count]
        if len(chunk) < count:
            raise RuntimeError(f"Serialized data ends early, at byte {len(self._data)}")
        self._at += count
        return chunk

    def _number(self, form: str, size: int) -> Any:
        return struct.unpack(form, self._take(size))[0]

    def _string(self, size: int) -> str:
        try:
            return self._take(size).decode()
        except UnicodeDecodeError as error:
            raise RuntimeError(f"Serialized data is malformed: {error}") from error


def _map_filler(target: dict[Any, Any]) -> Callable[[Any], None]:
    """Takes keys and values in turn."""
    pending: list[Any] = []

    def add(value: Any) -> None:
        if pending:
            target[pending.pop()] = value
        elif isinstance(value, dict | list):
            raise RuntimeError("Serialized data is malformed: a container is used as a map key")
        else:
            pending.append(value)

    return add

"""Programs as bytes: any node with everything that it reaches, sharing and identity of variables included.

wire.py describes the format, writer.py and reader.py are its two directions, decode.py turns bytes into maps
and lists.
"""

from __future__ import annotations

import os
from pathlib import Path

from pypto.ir.node import IRNode
from pypto.ir.serialization.decode import decode
from pypto.ir.serialization.reader import Reader
from pypto.ir.serialization.writer import encode

__all__ = ["deserialize", "deserialize_from_file", "serialize", "serialize_to_file"]


def serialize(node: IRNode) -> bytes:
    """The bytes of an expression, statement, function or program. Raises `TypeError` for anything else."""
    if not isinstance(node, IRNode):
        raise TypeError(f"serialize expects an IR node, got {type(node).__name__}; put a type into a Var")
    return encode(node)


def deserialize(data: bytes) -> IRNode:
    """The node that `serialize` made `data` from, with fresh variables.

    Raises `RuntimeError` for malformed bytes and missing or wrong fields, `ValueError` for bytes that hold no
    node and for dangling references, `TypeError` for unknown node classes and attribute values.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"deserialize expects bytes, got {type(data).__name__}")
    try:
        return Reader(decode(bytes(data))).read()
    except RecursionError as error:
        raise RuntimeError("Serialized data nests types too deeply") from error


def serialize_to_file(node: IRNode, path: str | os.PathLike[str]) -> None:
    """Write `serialize(node)`. Raises `ValueError` naming the path when it cannot be written."""
    data = serialize(node)
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        raise ValueError(f"cannot write '{os.fspath(path)}': {error.strerror}") from error


def deserialize_from_file(path: str | os.PathLike[str]) -> IRNode:
    """Read what `serialize_to_file` wrote. Raises `ValueError` naming the path when it cannot be read."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ValueError(f"cannot read '{os.fspath(path)}': {error.strerror}") from error
    return deserialize(data)

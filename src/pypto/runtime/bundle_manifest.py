"""The manifest of a prebuilt bundle, `prebuilt.json`: what it says, and reading it strictly.

A bundle comes from another machine, so nothing in it is believed: every field has an exact type, every rule
that a manifest breaks is a `ValueError` that names the manifest and the field, and nothing here touches the
files that the manifest names.

`cpu_features` and `task_runtime` are ours: the instructions that the kernels use beyond those of the target,
and the library of the task runtime. Both may be absent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pypto.runtime import metadata, task_interface
from pypto.runtime.metadata import Sidecar
from pypto.runtime.task_interface import ArgDirection

MANIFEST = "prebuilt.json"
PLATFORM = "cpu"
_SCHEMA = 1
_LARGEST_MANIFEST = 64 << 20
_LARGEST_ID = (1 << 31) - 1
_CORE_TYPES = ("aic", "aiv")
_TOKENS = {"IN": ArgDirection.IN, "OUT": ArgDirection.OUT, "INOUT": ArgDirection.INOUT}
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_SHA256 = re.compile(r"[0-9a-f]{64}")

Signature = tuple[ArgDirection, ...]


@dataclass(frozen=True, slots=True)
class BundledFile:
    """A file below the bundle's root. `field` is its place in the manifest, for messages."""

    field: str
    file: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class BundledKernel:
    """One kernel binary, which several registrations may name."""

    library: BundledFile
    core_type: str
    entry: str


@dataclass(frozen=True, slots=True)
class BundledOrchestration:
    """The orchestration binary with the names of what it exports; `config_name` may be empty."""

    library: BundledFile
    function_name: str
    config_name: str
    signature: Signature


@dataclass(frozen=True, slots=True)
class BundledRegistration:
    """One row: a function id, and the binary that it runs."""

    func_id: int
    name: str
    core_type: str
    binary: str
    signature: Signature


@dataclass(frozen=True, slots=True)
class Requirements:
    """What the loading side must be."""

    platform: str
    runtime: str
    target: str
    abi: str
    cpu_features: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of `prebuilt.json`, every rule that concerns the text alone kept."""

    path: Path
    requirements: Requirements
    binaries: Mapping[str, BundledKernel]
    orchestration: BundledOrchestration
    kernels: tuple[BundledRegistration, ...]
    task_runtime: BundledFile | None
    meta: Sidecar

    def wrong(self, field: str, what: str) -> ValueError:
        """The error for a field that something outside the text contradicts."""
        return _wrong(self.path, field, what)


def manifest_text(
    requirements: Requirements,
    binaries: Mapping[str, BundledKernel],
    orchestration: BundledOrchestration,
    kernels: tuple[BundledRegistration, ...],
    task_runtime: BundledFile,
    meta: Sidecar,
) -> str:
    """The text of a manifest; equal content gives equal text."""
    content: dict[str, Any] = {
        "schema": _SCHEMA,
        **asdict(requirements),
        "binaries": {
            name: {**_file_fields(b.library), "core_type": b.core_type, "entry": b.entry}
            for name, b in binaries.items()
        },
        "orchestration": {
            **_file_fields(orchestration.library),
            "function_name": orchestration.function_name,
            "config_name": orchestration.config_name,
            "signature": [d.name for d in orchestration.signature],
        },
        "kernels": [{**asdict(row), "signature": [d.name for d in row.signature]} for row in kernels],
        "task_runtime": _file_fields(task_runtime),
        "meta": metadata.sidecar_content(meta.signature, meta.platform, meta.backend),
    }
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


def _file_fields(file: BundledFile) -> dict[str, Any]:
    return {"file": file.file, "size": file.size, "sha256": file.sha256}


def read_manifest(root: Path) -> Manifest:
    """Raises `FileNotFoundError` for a folder without a manifest, `ValueError` for one that breaks a rule."""
    path = root / MANIFEST
    if not path.is_file():
        raise FileNotFoundError(f"no {MANIFEST} in {root}: not a bundle; write one with 'pypto bundle'")
    whole = _Object(path, "", _parse(path))
    schema = whole.integer("schema")
    if schema != _SCHEMA:
        raise whole.wrong("schema", f"is {schema}, expected {_SCHEMA}")
    requirements = Requirements(
        platform=whole.text("platform"),
        runtime=whole.text("runtime"),
        target=whole.text("target"),
        abi=whole.text("abi"),
        cpu_features=tuple(whole.texts("cpu_features")) if "cpu_features" in whole.content else (),
    )
    listed = whole.object("binaries")
    binaries = {name: _kernel(listed.object(name)) for name in listed.content}
    orchestration = _orchestration(whole.object("orchestration"))
    kernels = tuple(_registration(row, binaries) for row in whole.objects("kernels"))
    _check_ids(path, kernels)
    runtime = _file(whole.object("task_runtime")) if "task_runtime" in whole.content else None
    meta = metadata.parse_sidecar(f"{path}: 'meta'", whole.object("meta").content)
    _check_meta(path, orchestration, meta)
    return Manifest(path, requirements, binaries, orchestration, kernels, runtime, meta)


def _parse(path: Path) -> Any:
    try:
        if path.stat().st_size > _LARGEST_MANIFEST:
            raise ValueError(f"larger than {_LARGEST_MANIFEST} bytes")
        text = path.read_bytes().decode("utf-8")
        return json.loads(text, object_pairs_hook=_unique_names)
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read as a manifest: {error}") from error


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the field '{twice}' is given twice in one object")
    return result


def _file(entry: _Object) -> BundledFile:
    name = entry.text("file")
    pure = PurePosixPath(name)
    if not name or "\0" in name or pure.is_absolute() or ".." in pure.parts or ":" in name or "\\" in name:
        raise entry.wrong("file", f"{name!r} is no relative path inside the bundle")
    size = entry.integer("size")
    if size < 0:
        raise entry.wrong("size", f"is negative: {size}")
    sha256 = entry.text("sha256")
    if _SHA256.fullmatch(sha256) is None:
        raise entry.wrong("sha256", f"is no digest: {sha256!r}")
    return BundledFile(entry.place, name, size, sha256)


def _kernel(entry: _Object) -> BundledKernel:
    return BundledKernel(_file(entry), _core_type(entry), entry.symbol("entry"))


def _orchestration(entry: _Object) -> BundledOrchestration:
    return BundledOrchestration(
        _file(entry),
        entry.symbol("function_name"),
        entry.text("config_name") and entry.symbol("config_name"),
        _signature(entry, task_interface.MAX_ORCHESTRATION_TENSORS),
    )


def _registration(row: _Object, binaries: Mapping[str, BundledKernel]) -> BundledRegistration:
    func_id = row.integer("func_id")
    if not 0 <= func_id <= _LARGEST_ID:
        raise row.wrong("func_id", f"is {func_id}, expected 0 to {_LARGEST_ID}")
    core_type = _core_type(row)
    binary = row.text("binary")
    if binary not in binaries:
        raise row.wrong("binary", f"names '{binary}', which 'binaries' lacks")
    if binaries[binary].core_type != core_type:
        raise row.wrong(
            "core_type", f"is {core_type}, but that of '{binary}' is {binaries[binary].core_type}"
        )
    signature = _signature(row, task_interface.MAX_KERNEL_TENSORS)
    return BundledRegistration(func_id, row.text("name"), core_type, binary, signature)


def _core_type(entry: _Object) -> str:
    core_type = entry.text("core_type")
    if core_type not in _CORE_TYPES:
        raise entry.wrong("core_type", f"is '{core_type}', expected aic or aiv")
    return core_type


def _signature(entry: _Object, limit: int) -> Signature:
    tokens = entry.texts("signature")
    unknown = next((token for token in tokens if token not in _TOKENS), None)
    if unknown is not None:
        raise entry.wrong("signature", f"holds '{unknown}', expected IN, OUT or INOUT")
    if len(tokens) > limit:
        raise entry.wrong("signature", f"of {len(tokens)} entries exceeds supported {limit}")
    return tuple(_TOKENS[token] for token in tokens)


def _check_ids(path: Path, kernels: tuple[BundledRegistration, ...]) -> None:
    if len(kernels) > task_interface.MAX_CHILDREN:
        what = f"has {len(kernels)} entries, which exceeds supported {task_interface.MAX_CHILDREN}"
        raise _wrong(path, "kernels", what)
    seen: set[int] = set()
    for position, row in enumerate(kernels):
        if row.func_id in seen:
            raise _wrong(path, f"kernels[{position}].func_id", f"{row.func_id} is given twice")
        seen.add(row.func_id)


def _check_meta(path: Path, orchestration: BundledOrchestration, meta: Sidecar) -> None:
    tensors = sum(param.shape is not None for param in meta.signature.params)
    given = len(orchestration.signature)
    if given not in (0, tensors):  # empty: every tensor is read and written
        raise _wrong(path, "orchestration.signature", f"has {given} entries for {tensors} tensor parameters")


class _Object:
    """One JSON object of the manifest with its place there."""

    def __init__(self, path: Path, place: str, content: Any) -> None:
        if not isinstance(content, dict):
            raise _wrong(path, place, "must be an object")
        self.path = path
        self.place = place
        self.content: dict[str, Any] = content

    def text(self, name: str) -> str:
        value: str = self._typed(name, str)
        if _LONE_SURROGATE.search(value) is not None:
            raise self.wrong(name, f"is no text: {value!r}")
        return value

    def integer(self, name: str) -> int:
        value: int = self._typed(name, int)
        return value

    def symbol(self, name: str) -> str:
        """The name of something that a library exports."""
        value = self.text(name)
        if not value.isascii() or not value.isidentifier():
            raise self.wrong(name, f"is no symbol: {value!r}")
        return value

    def texts(self, name: str) -> list[str]:
        value: list[Any] = self._typed(name, list)
        if not all(type(entry) is str for entry in value):
            raise self.wrong(name, "must be a list of strings")
        return value

    def object(self, name: str) -> _Object:
        return _Object(self.path, self._place_of(name), self._typed(name, dict))

    def objects(self, name: str) -> list[_Object]:
        rows: list[Any] = self._typed(name, list)
        return [_Object(self.path, f"{self._place_of(name)}[{i}]", row) for i, row in enumerate(rows)]

    def wrong(self, name: str, what: str) -> ValueError:
        return _wrong(self.path, self._place_of(name), what)

    def _place_of(self, name: str) -> str:
        return f"{self.place}.{name}" if self.place else name

    def _typed(self, name: str, kind: type) -> Any:
        if name not in self.content:
            raise self.wrong(name, "is missing")
        value = self.content[name]
        if type(value) is not kind:
            raise self.wrong(name, f"must be of type {kind.__name__}, got {type(value).__name__}")
        return value


def _wrong(path: Path, field: str, what: str) -> ValueError:
    return ValueError(f"{path}: '{field}' {what}" if field else f"{path} {what}")

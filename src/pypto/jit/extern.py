"""`@pl.jit.extern`: hand-written kernels, of which the Python function is only the signature."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto import ir
from pypto.language.specialisation import GivenParameter

_CORE_TYPES = {"aic": ir.FunctionType.AIC, "aiv": ir.FunctionType.AIV}
_QUOTED_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class External:
    """The source files behind a stub, by core type, and how they are built and launched."""

    sources: dict[ir.FunctionType, str]
    include_dirs: tuple[str, ...]
    dual_aiv_dispatch: bool

    def functions(self, name: str, parameters: Sequence[GivenParameter], span: ir.Span) -> list[ir.Function]:
        """The kernels, and last the function that is called: the only kernel, or a group of both."""
        if len(self.sources) == 1:
            return [self._kernel(name, core, parameters, span) for core in self.sources]
        kernels = [
            self._kernel(f"{name}_{core.name.lower()}", core, parameters, span) for core in self.sources
        ]
        return [*kernels, _group(name, kernels, parameters, span)]

    def _kernel(
        self,
        name: str,
        core: ir.FunctionType,
        parameters: Sequence[GivenParameter],
        span: ir.Span,
    ) -> ir.Function:
        attrs: dict[str, Any] = {"external_source": self.sources[core]}
        if self.include_dirs:
            attrs["external_include_dirs"] = json.dumps(list(self.include_dirs))
        if self.dual_aiv_dispatch and core is ir.FunctionType.AIV:
            attrs["dual_aiv_dispatch"] = True
        return ir.Function(
            name,
            [(ir.Var(p.name, p.type, span), p.direction) for p in parameters],
            _result_types(parameters),
            ir.SeqStmts([], span),
            span,
            core,
            attrs=attrs,
        )

    def text_hash(self) -> str:
        """Digest of the sources, of what they include in quotes, and of how they are built."""
        digest = hashlib.sha256(repr((self.include_dirs, self.dual_aiv_dispatch)).encode())
        for core, path in self.sources.items():
            digest.update(core.name.encode())
            for file in _reached(Path(path), self.include_dirs):
                digest.update(str(file).encode() + b"\0" + file.read_bytes())
        return digest.hexdigest()


def make_external(
    stub_file: str,
    core_type: str,
    source: Any,
    aic_source: Any,
    aiv_source: Any,
    dual_aiv_dispatch: bool,
    include_dirs: Sequence[Any] | None,
) -> External:
    """Check the options of `@pl.jit.extern`; relative paths start at the file of the stub.

    Raises:
        ValueError: the options do not fit together, or a file or directory does not exist.
        TypeError: `include_dirs` is one path instead of several.
    """
    if core_type not in (*_CORE_TYPES, "mixed"):
        raise ValueError(f"core_type must be 'aic', 'aiv', or 'mixed', got {core_type!r}")
    if dual_aiv_dispatch and core_type != "mixed":
        raise ValueError("dual_aiv_dispatch=True requires core_type='mixed'")
    if isinstance(include_dirs, (str, bytes, os.PathLike)):
        raise TypeError("include_dirs must be a sequence of paths, not one path")
    base = Path(stub_file).resolve().parent
    given: dict[ir.FunctionType, Any]
    if core_type == "mixed":
        if aic_source is None or aiv_source is None:
            raise ValueError("core_type='mixed' requires both aic_source= and aiv_source=")
        given = {ir.FunctionType.AIC: aic_source, ir.FunctionType.AIV: aiv_source}
    else:
        chosen = source if source is not None else aic_source if core_type == "aic" else aiv_source
        if chosen is None:
            raise ValueError(f"core_type={core_type!r} requires source=")
        given = {_CORE_TYPES[core_type]: chosen}
    return External(
        {core: _existing(base, path, "source file", Path.is_file) for core, path in given.items()},
        tuple(_existing(base, path, "include directory", Path.is_dir) for path in include_dirs or ()),
        dual_aiv_dispatch,
    )


def _existing(base: Path, path: Any, what: str, exists: Any) -> str:
    found = base / Path(path)  # an absolute path stays what it is
    if not exists(found):
        raise ValueError(f"{what} not found: {found}")
    return str(found.resolve())


def _reached(source: Path, include_dirs: Sequence[str]) -> Iterator[Path]:
    """A source and the files it includes in quotes, each once."""
    pending, seen = [source], {source}
    while pending:
        file = pending.pop()
        yield file
        for name in _QUOTED_INCLUDE.findall(file.read_text(errors="replace")):
            for folder in (file.parent, *map(Path, include_dirs)):
                candidate = (folder / name).resolve()
                if candidate.is_file():
                    if candidate not in seen:
                        seen.add(candidate)
                        pending.append(candidate)
                    break


def _result_types(parameters: Sequence[GivenParameter]) -> list[ir.Type]:
    """A call gives what the kernel wrote: its first output."""
    outputs = (p.type for p in parameters if p.direction is not ir.ParamDirection.In)
    first = next(outputs, None)
    return [] if first is None else [first]


def _group(
    name: str, kernels: Sequence[ir.Function], parameters: Sequence[GivenParameter], span: ir.Span
) -> ir.Function:
    """A function that calls all kernels, and returns what the first gives."""
    params = [ir.Var(p.name, p.type, span) for p in parameters]
    results = _result_types(parameters)
    given = results[0] if results else ir.UnknownType.get()
    calls = [ir.Call(ir.GlobalVar(kernel.name), params, {}, {}, given, span) for kernel in kernels]
    statements: list[ir.Stmt] = [ir.EvalStmt(call, span) for call in calls]
    outputs = [ir.Var(f"{name}_out", result, span) for result in results]
    if outputs:
        statements[0] = ir.AssignStmt(outputs[0], calls[0], span)
    statements.append(ir.ReturnStmt(outputs, span))
    directions = [p.direction for p in parameters]
    return ir.Function(
        name,
        list(zip(params, directions, strict=True)),
        results,
        ir.SeqStmts(statements, span),
        span,
        ir.FunctionType.Group,
    )

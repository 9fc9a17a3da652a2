"""A compiled program as a user holds it: where it is, how it is called, and the call itself.

A build directory holds one orchestration, or several under `next_levels/`; then each is a sub-program.
Loading (compile what is missing, bind to the runtime) happens at the first call, once.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pypto import ir
from pypto.backend import BackendType, backend_of_platform, simulator_of
from pypto.core.dtype import DataType
from pypto.runtime import metadata, spans
from pypto.runtime.arguments import ArgumentBinder, BoundArguments
from pypto.runtime.array_types import ARRAY_NAMES, runtime_shape
from pypto.runtime.assemble import compile_and_assemble
from pypto.runtime.built_program import BuiltProgram
from pypto.runtime.callables import ChipCallable
from pypto.runtime.device_runner import execute
from pypto.runtime.metadata import CallSignature, ParamInfo, extract_param_infos
from pypto.runtime.native_runtime import pack_options
from pypto.runtime.run_config import RunConfig, run_options
from pypto.runtime.worker import ChipWorker, any_worker_active

NEXT_LEVELS = "next_levels"
Assembled = tuple[ChipCallable, str, Mapping[str, Any]]
PreparedArguments = tuple[BoundArguments, tuple[Any, ...], bool]


class OrchestrationProgram(BuiltProgram):
    """One orchestration with its build directory; callable."""

    kind = "CompiledProgram"

    def __init__(self, name: str, output_dir: Path, platform: str, signature: CallSignature) -> None:
        self.name = name
        self.output_dir = output_dir
        self._folder = output_dir.absolute()  # a later chdir does not move it
        self.platform = platform
        self._signature = signature
        self._binder = ArgumentBinder(signature, self.kind)

    @property
    def signature(self) -> CallSignature:
        return self._signature

    def load(self) -> ChipCallable:
        """Compile what the store lacks and load it. Happens once; later calls give the same object."""
        return self._assembled[0]

    @functools.cached_property
    def _assembled(self) -> Assembled:
        return self._assemble()

    def _assemble(self) -> Assembled:
        return compile_and_assemble(self._folder, self.platform)

    @property
    def chip_callable(self) -> ChipCallable:
        return self._assembled[0]

    @property
    def runtime_name(self) -> str:
        return self._assembled[1]

    @property
    def runtime_config(self) -> Mapping[str, Any]:
        return self._assembled[2]

    def build_orch_args(self, *args: Any, worker: Any = None) -> PreparedArguments:
        """Packed arguments, the objects whose memory they name, and whether the call returns values."""
        bound = self._binder.bind(args, worker)
        return bound, tuple(bound.keep), bound.result is not None

    def build_call_config(
        self, config: RunConfig | None = None, *, aicpu_thread_num: int | None = None, dfx_dir: Any = None
    ) -> bytes:
        """The run options as the runtime reads them."""
        return pack_options(run_options())

    def fix_scalars(self, values: Mapping[str, Any]) -> None:
        """From now on refuse other values for scalars that the program was specialised for."""
        self._binder.fix_scalars(values)

    def __call__(self, *args: Any, config: RunConfig | None = None, **keywords: Any) -> Any:
        """Run in place on all parameters, or on all but the pure outputs, which are made and returned."""
        self._refuse_keywords(keywords)
        if config is not None and not isinstance(config, RunConfig):
            raise TypeError(f"config must be a RunConfig, got {type(config).__name__}")
        worker = self._active_worker(config) if any_worker_active() else None
        return self.run_on(worker, args, config) if worker is None else worker.run_part(self, args, config)

    def _active_worker(self, config: RunConfig | None) -> ChipWorker | None:
        platform = self.platform if config is None else config.platform
        device_id = 0 if config is None else config.device_id
        return ChipWorker.current(level=2, platform=platform, device_id=device_id, runtime=self.runtime_name)

    def run_on(self, worker: ChipWorker | None, args: Sequence[Any], config: RunConfig | None) -> Any:
        """Run with the resident tensors of `worker`; `None` is a run that has none."""
        if spans.wanted():
            return self._run_timed(worker, args, config)
        bound = self._binder.bind(args, worker)
        execute(self._assembled[0], bound, config, self._folder)
        return bound.result

    def _run_timed(self, worker: ChipWorker | None, args: Sequence[Any], config: RunConfig | None) -> Any:
        chip = self._assembled[0]
        started = spans.clock()
        bound = self._binder.bind(args, worker)
        ready = spans.clock()
        execute(chip, bound, config, self._folder)
        spans.record(self.name, f"{id(self):x}", started, ready, spans.clock())
        return bound.result


class CompiledProgram(BuiltProgram):
    """A program that was compiled into a directory. Equal to, and usable as, the path of that directory."""

    kind = "CompiledProgram"

    def __init__(
        self,
        program: ir.Program | None,
        output_dir: Path | str,
        *,
        backend_type: BackendType = BackendType.Ascend910B,
        platform: str | None = None,
        _signatures: Mapping[str, CallSignature] | None = None,
    ) -> None:
        self.program = program
        self.output_dir = Path(output_dir)
        self._folder = self.output_dir.absolute()  # a later chdir does not move it
        self.backend_type = backend_type
        self.platform = platform or simulator_of(backend_type)
        if _signatures is None:
            if program is None:
                raise ValueError("a CompiledProgram needs its program; to reload a directory use from_dir")
            func = metadata.signature_function(program)
            _signatures = {func.name: metadata.signature_of(func)}
        several = len(_signatures) > 1
        self._parts = {
            name: OrchestrationProgram(
                name,
                self.output_dir / NEXT_LEVELS / name if several else self.output_dir,
                self.platform,
                signature,
            )
            for name, signature in _signatures.items()
        }
        self._only = None if several else next(iter(self._parts.values()))

    @classmethod
    def from_dir(
        cls,
        output_dir: Path | str,
        *,
        platform: str | None = None,
        backend_type: BackendType | None = None,
    ) -> CompiledProgram:
        """Reload what an earlier compile left. Nothing is written or compiled here.

        Raises `FileNotFoundError` for a directory without metadata, `ValueError` for metadata that cannot be
        used.
        """
        root = Path(output_dir)
        folders = sorted(p for p in (root / NEXT_LEVELS).glob("*") if (p / metadata.SIDECAR).is_file())
        if (root / metadata.SIDECAR).is_file() or not folders:
            sidecars = {root.name: metadata.read_sidecar(root)}
        else:
            sidecars = {folder.name: metadata.read_sidecar(folder) for folder in folders}
        first = next(iter(sidecars.values()))
        chosen = platform or first.platform
        backend = backend_type or (backend_of_platform(platform) if platform else first.backend)
        signatures = {name: sidecar.signature for name, sidecar in sidecars.items()}
        return cls(None, root, backend_type=backend, platform=chosen, _signatures=signatures)

    @property
    def orchestration_names(self) -> list[str]:
        """Names of the sub-programs; empty when there is one orchestration, which is called directly."""
        return [] if self._only is not None else list(self._parts)

    def __getitem__(self, name: str) -> OrchestrationProgram:
        part = self._parts.get(name) if self._only is None else None
        if part is None:
            raise KeyError(f"No orchestration '{name}' under {self.output_dir}")
        return part

    def __getattr__(self, name: str) -> OrchestrationProgram:
        parts: dict[str, OrchestrationProgram] = self.__dict__.get("_parts", {})
        if name in parts and len(parts) > 1:
            return parts[name]
        raise AttributeError(f"'CompiledProgram' object has no attribute '{name}'")

    def single(self) -> OrchestrationProgram:
        """The orchestration of a program that has one. Raises `TypeError` naming them for several."""
        if self._only is None:
            names = ", ".join(self._parts)
            raise TypeError(f"the program has several orchestrations; choose one by name: {names}")
        return self._only

    @property
    def signature(self) -> CallSignature:
        return self.single().signature

    def load(self) -> ChipCallable:
        return self.single().load()

    @property
    def chip_callable(self) -> ChipCallable:
        return self.single().chip_callable

    @property
    def runtime_name(self) -> str:
        return self.single().runtime_name

    @property
    def runtime_config(self) -> Mapping[str, Any]:
        return self.single().runtime_config

    def build_orch_args(self, *args: Any, worker: Any = None) -> PreparedArguments:
        return self.single().build_orch_args(*args, worker=worker)

    def build_call_config(
        self, config: RunConfig | None = None, *, aicpu_thread_num: int | None = None, dfx_dir: Any = None
    ) -> bytes:
        return self.single().build_call_config(config, aicpu_thread_num=aicpu_thread_num, dfx_dir=dfx_dir)

    def fix_scalars(self, values: Mapping[str, Any]) -> None:
        self.single().fix_scalars(values)

    def __call__(self, *args: Any, config: RunConfig | None = None, **keywords: Any) -> Any:
        only = self._only
        if only is None:
            only = self.single()
        return only(*args, config=config, **keywords)

    def validate_ir(
        self,
        tensors: Mapping[str, Any],
        expected: Mapping[str, Any],
        *,
        rtol: float = 5e-2,
        atol: float = 5e-2,
    ) -> None:
        """Run every dumped pass stage on `tensors` and compare with `expected`, both by parameter name.

        Raises `FileNotFoundError` without dumps, `AssertionError` that names the first wrong stage.
        """
        from pypto.debug import validate_pass_ir_codegen_results

        dumps = self._folder / "passes_dump"
        validate_pass_ir_codegen_results(dumps, tensors, expected, rtol=rtol, atol=atol)

    def _get_metadata(self) -> tuple[list[ParamInfo], list[int], list[ir.Type]]:
        """Parameters, places of pure outputs, return types (unknown for a reloaded program)."""
        if self.program is not None:
            return extract_param_infos(self.program)
        return super()._get_metadata()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, CompiledProgram | str | Path):
            return str(self) == str(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))


def _to_runtime_shape(shape: list[int], dtype: DataType) -> list[int]:
    """The shape of the array that holds a tensor of this shape."""
    return runtime_shape(shape, dtype)


def _to_torch_dtype(dtype: DataType) -> Any:
    """The torch dtype of a tensor's arrays; None when torch has none. Needs torch."""
    import torch  # type: ignore[import-not-found]

    name = "float64" if str(dtype) == "fp64" else ARRAY_NAMES.get(dtype, "")
    name = "float4_e2m1fn_x2" if dtype is DataType.FP4 else name
    return getattr(torch, name, None)

"""A compiled program for several ranks: a host function, and a chip program per dispatched function."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto import ir
from pypto.backend import BackendType, backend_of_platform, simulator_of
from pypto.codegen.artifact import HOST_CODE, write_whole
from pypto.codegen.kernel_config import DEFAULT_RUNTIME
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import metadata
from pypto.runtime.arguments import ArgumentBinder
from pypto.runtime.built_program import BuiltProgram
from pypto.runtime.compiled_program import NEXT_LEVELS, OrchestrationProgram
from pypto.runtime.device_tensor import DeviceTensor, StackedDeviceTensor
from pypto.runtime.metadata import CallSignature
from pypto.runtime.run_config import RunConfig

if TYPE_CHECKING:
    from pypto.runtime.distributed.worker import DistributedWorker

SIDECAR = "distributed_meta.json"
SUB_WORKERS = "sub_workers"
_SCHEMA = 2


class DistributedCompiledProgram(BuiltProgram):
    """A program that was compiled into a directory, to be run by several ranks."""

    kind = "DistributedCompiledProgram"

    def __init__(
        self,
        program: ir.Program | None,
        output_dir: Path | str,
        *,
        backend_type: BackendType = BackendType.Ascend910B,
        platform: str | None = None,
        distributed_config: DistributedConfig | None = None,
        _signature: CallSignature,
    ) -> None:
        self.program = program
        self.output_dir = Path(output_dir)
        self._folder = self.output_dir.absolute()  # a later chdir does not move it
        self.backend_type = backend_type
        self.platform = platform or simulator_of(backend_type)
        self._signature = _signature
        self._distributed_config = distributed_config or DistributedConfig()
        self.fixed_scalars: Mapping[str, Any] = {}

    @classmethod
    def from_dir(
        cls,
        output_dir: Path | str,
        *,
        platform: str | None = None,
        backend_type: BackendType | None = None,
        distributed_config: DistributedConfig | None = None,
    ) -> DistributedCompiledProgram:
        """Reload what an earlier compile left.

        Raises `FileNotFoundError` without metadata, `ValueError` for metadata that cannot be used.
        """
        root = Path(output_dir)
        path = root / SIDECAR
        if not path.is_file():
            raise FileNotFoundError(f"no {SIDECAR} in {root}: not a compiled distributed program")
        try:
            content = json.loads(path.read_bytes().decode("utf-8"))
        except (OSError, ValueError) as error:
            raise ValueError(f"{path} cannot be read: {error}; recompile the program") from error
        if not isinstance(content, dict) or content.get("schema") != _SCHEMA:
            raise ValueError(f"{path}: Incompatible schema, expected {_SCHEMA}; recompile the program")
        sidecar = metadata.parse_sidecar(path, {**content, "schema": metadata.SCHEMA})
        config = distributed_config or _config_of(path, content.get("distributed_config"))
        return cls(
            None,
            root,
            backend_type=backend_type or (backend_of_platform(platform) if platform else sidecar.backend),
            platform=platform or sidecar.platform,
            distributed_config=config,
            _signature=sidecar.signature,
        )

    # -- facts -------------------------------------------------------------------------------------------

    @property
    def device_ids(self) -> list[int]:
        """The device of each rank."""
        return list(self._distributed_config.device_ids)

    @property
    def runtime(self) -> str:
        """The runtime of all chip programs."""
        return self._distributed_config.runtime or DEFAULT_RUNTIME

    @property
    def signature(self) -> CallSignature:
        return self._signature

    @property
    def orchestration_names(self) -> list[str]:
        """Empty: the host function is the one thing to call."""
        return []

    def single(self) -> DistributedCompiledProgram:
        """This program, which is one thing to call."""
        return self

    def load(self) -> None:
        """Compile what the store lacks and load all chip programs."""
        for chip in self.chips.values():
            chip.load()

    # -- runs --------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, config: RunConfig | None = None, **keywords: Any) -> Any:
        """Start the ranks, run once, stop them. In place with all arguments; without the outputs these are
        made and returned."""
        self._refuse_keywords(keywords)
        complete, result = ArgumentBinder(self.signature, self.kind).complete(args)
        for info, value in zip(self.signature.params, complete, strict=True):
            if info.shape is not None:
                _check_host_tensor(info.name, value)
        with self.prepare(config) as worker:
            worker(*complete)
        return result

    def prepare(
        self,
        config: RunConfig | None = None,
        *,
        extra_compiled: Any = (),
        persistent: bool = False,
        reset_persistent_windows: bool | None = None,
        callbacks: Mapping[str, Callable[..., Any]] | None = None,
        sub_worker_overrides: Mapping[str, Callable[..., Any]] | None = None,
        startup_timeout_s: float | None = None,
    ) -> DistributedWorker:
        """Start the ranks for repeated runs, of `extra_compiled` programs too."""
        from pypto.runtime.distributed.worker import DistributedWorker

        return DistributedWorker(
            [self, *extra_compiled],
            config,
            persistent=persistent,
            reset_persistent_windows=reset_persistent_windows,
            callbacks=callbacks,
            sub_worker_overrides=sub_worker_overrides,
            startup_timeout_s=startup_timeout_s,
        )

    def fix_scalars(self, values: Mapping[str, Any]) -> None:
        """From now on refuse other values for scalars that the program was specialised for."""
        self.fixed_scalars = dict(values)

    # -- parts -------------------------------------------------------------------------------------------

    @functools.cached_property
    def chips(self) -> dict[str, OrchestrationProgram]:
        """The chip programs by name. Raises `RuntimeError` when there is none."""
        folders = sorted(p for p in (self._folder / NEXT_LEVELS).glob("*") if p.is_dir())
        if not folders:
            raise RuntimeError(f"No chip-level tasks found under {self.output_dir / NEXT_LEVELS}")
        return {
            folder.name: OrchestrationProgram(
                folder.name, folder, self.platform, metadata.read_sidecar(folder).signature
            )
            for folder in folders
        }

    @functools.cached_property
    def host_function(self) -> Callable[..., Any]:
        """The generated host function. Raises `ValueError` for a file that is not what was generated."""
        path = self._folder / HOST_CODE
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        if len(names) != 1:
            raise ValueError(f"{path} must define one function; recompile the program")
        namespace: dict[str, Any] = {}
        exec(compile(tree, str(path), "exec"), namespace)
        function: Callable[..., Any] = namespace[names[0]]
        return function

    @functools.cached_property
    def sub_worker_names(self) -> frozenset[str]:
        """The SubWorkers that the host calls."""
        return frozenset(path.stem for path in (self._folder / SUB_WORKERS).glob("*.py"))

    def sub_workers(self, callbacks: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
        """The bodies of the host's SubWorkers: what is given, else as written.

        Raises `ValueError` for missing bodies, `TypeError` for what cannot be called with one argument.
        """
        bodies: dict[str, Callable[..., Any]] = {}
        for name in sorted(self.sub_worker_names):
            if name in callbacks:
                _check_callback(name, callbacks[name])
                bodies[name] = callbacks[name]
                continue
            body = _sub_worker_of(self._folder / SUB_WORKERS / f"{name}.py", name)
            if body is None:
                raise ValueError(f"SubWorker '{name}' has no body: it must be supplied via callbacks")
            bodies[name] = body
        return bodies


def _check_callback(name: str, function: Any) -> None:
    if not callable(function):
        raise TypeError(f"callback '{name}' must be callable, got {type(function).__name__}")
    try:
        signature = inspect.signature(function)
    except ValueError:  # a function of C that does not tell its parameters
        return
    try:
        signature.bind([])
    except TypeError:
        raise TypeError(
            f"callback '{name}' must accept one positional argument, the sequence of its tensors; "
            f"it is declared as {name}{signature}"
        ) from None


def _check_host_tensor(name: str, value: Any) -> None:
    """A tensor that lives with a worker outlives no run that starts its own workers."""
    if isinstance(value, DeviceTensor | StackedDeviceTensor) or not hasattr(value, "shape"):
        raise TypeError(
            f"One-shot distributed programs only support host torch.Tensor parameters. "
            f"Parameter '{name}' got {type(value).__name__}; tensors that live with a worker need prepare()"
        )


def write_distributed_sidecar(
    root: Path,
    signature: CallSignature,
    platform: str,
    backend: BackendType,
    config: DistributedConfig,
) -> None:
    """Write `distributed_meta.json`; a reader sees the old file or the new one."""
    content = metadata.sidecar_content(signature, platform, backend)
    content |= {"schema": _SCHEMA, "distributed_config": dataclasses.asdict(config)}
    write_whole(root / SIDECAR, json.dumps(content, indent=1) + "\n")


def _config_of(path: Path, content: Any) -> DistributedConfig:
    kinds = {name: type(value) for name, value in dataclasses.asdict(DistributedConfig()).items()}
    if (
        not isinstance(content, dict)
        or any(type(value) is not kinds.get(name) for name, value in content.items())
        or any(type(device) is not int for device in content.get("device_ids", ()))
    ):
        raise ValueError(f"{path} has a wrong 'distributed_config'; recompile the program")
    try:
        return DistributedConfig(**content)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}; recompile the program") from error


def _sub_worker_of(path: Path, name: str) -> Callable[..., Any] | None:
    """The body of a SubWorker as a function of one sequence; None when it is only declared."""
    namespace: dict[str, Any] = {}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), namespace)
    function = namespace.get(name)
    return None if function is None else lambda args: function(*args)

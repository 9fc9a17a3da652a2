"""The last step of every run: loaded code, packed arguments, and the task runtime."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto.codegen.kernel_config import DEFAULT_RUNTIME
from pypto.runtime.arguments import BoundArguments
from pypto.runtime.assemble import compile_and_assemble
from pypto.runtime.callables import ChipCallable
from pypto.runtime.diagnostics import run_with_diagnostics
from pypto.runtime.native_runtime import pack_options
from pypto.runtime.run_config import RunConfig, run_options

if TYPE_CHECKING:
    from pypto.runtime.runner import _DfxOpts

__all__ = ["compile_and_assemble", "execute", "execute_on_device"]


def execute(
    chip: ChipCallable, bound: BoundArguments, config: RunConfig | None, output_dir: Path | None
) -> None:
    """Run; with diagnostics when `config` asks for them, written under `output_dir`."""
    if config is None or not config.any_dfx_enabled():
        chip.program.run(bound.layouts, bound.addresses, bound.scalars, pack_options(run_options()))
        return
    if output_dir is None:
        raise ValueError("diagnostics need an output prefix: the folder that they are written to")
    run_with_diagnostics(chip, bound, config, output_dir)


def execute_on_device(
    chip_callable: ChipCallable,
    orch_args: BoundArguments | tuple[Any, ...],
    platform: str,
    runtime_name: str = DEFAULT_RUNTIME,
    device_id: int = 0,
    *,
    level: int = 2,
    aicpu_thread_num: int | None = None,
    output_prefix: Path | str | None = None,
    dfx: _DfxOpts | None = None,
) -> None:
    """Run what `compile_and_assemble` and `build_orch_args` gave, in place.

    Raises `ValueError` for another level or runtime, an unknown platform, and for diagnostics without
    `output_prefix`.
    """
    if level != 2:
        raise ValueError(f"execute_on_device only supports level=2, got {level}")
    if runtime_name != DEFAULT_RUNTIME:
        raise ValueError(f"the runtime '{runtime_name}' is not available, only '{DEFAULT_RUNTIME}'")
    config = RunConfig(platform=platform, device_id=device_id, aicpu_thread_num=aicpu_thread_num)
    bound = orch_args if isinstance(orch_args, BoundArguments) else orch_args[0]
    if dfx is not None:
        config = dfx.apply(config)
    execute(chip_callable, bound, config, None if output_prefix is None else Path(output_prefix))

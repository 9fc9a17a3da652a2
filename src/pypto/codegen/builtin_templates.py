"""Built-in kernels that are written from templates: a build directory of their own per variant.

A template is a folder: sources and a `kernel_config.py`, each filled in with the inputs of the variant. The
rows of its configuration name the template, so that what is compiled from it is shared with nothing else:

    {"func_id": 0, ..., "template": "{{ variant }}", "template_inputs": {{ inputs }}}
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pypto.codegen.artifact import remove_markers, write_whole

__all__ = ["BuiltinNextLevelSpec", "write_builtin_next_level"]

_CONFIG = "kernel_config.py"


@dataclass(frozen=True, slots=True)
class BuiltinNextLevelSpec:
    """One variant of a built-in operator.

    `template_vars` are the inputs; `entry_symbol` is what the orchestration of the variant exports.
    """

    op_name: str
    variant: str
    entry_symbol: str
    template_dir: str
    template_vars: Mapping[str, str | int | float | bool] = field(default_factory=dict)


def write_builtin_next_level(spec: BuiltinNextLevelSpec, output_dir: str | os.PathLike[str]) -> list[Path]:
    """Write the build directory `next_levels/<variant>`; the files, its configuration last.

    Raises `ValueError` for a variant that is no name, a template without a configuration, and an input that
    a template asks for but does not get.
    """
    if not spec.variant.isidentifier():
        raise ValueError(f"the variant '{spec.variant}' of '{spec.op_name}' is no name for a folder")
    source = Path(spec.template_dir)
    names = sorted(str(path.relative_to(source)) for path in source.rglob("*") if path.is_file())
    if _CONFIG not in names:
        raise ValueError(f"the template of '{spec.op_name}' in {source} has no {_CONFIG}")
    names.sort(key=_CONFIG.__eq__)
    texts = {name: _filled(spec, source / name) for name in names}
    folder = Path(output_dir) / "next_levels" / spec.variant
    folder.mkdir(parents=True, exist_ok=True)
    remove_markers(folder)
    return [write_whole(folder / name, text) for name, text in texts.items()]


def _filled(spec: BuiltinNextLevelSpec, path: Path) -> str:
    import jinja2  # not needed by most programs

    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    inputs = dict(spec.template_vars)
    try:
        return environment.from_string(path.read_text(encoding="utf-8")).render(
            {**inputs, "inputs": inputs, "variant": spec.variant, "entry_symbol": spec.entry_symbol}
        )
    except jinja2.TemplateError as error:
        raise ValueError(f"the template {path} of '{spec.op_name}' cannot be filled in: {error}") from error

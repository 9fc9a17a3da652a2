"""The public import paths of code generation lead to one module."""

from __future__ import annotations

import importlib

import pypto.codegen
from pypto.codegen import generate_orchestration


def test_the_lower_layer_names_the_same_module_both_ways():
    direct = importlib.import_module("pypto.pypto_core.codegen")
    from pypto.pypto_core import codegen as attribute

    assert direct is attribute is pypto.codegen
    assert direct.generate_orchestration is generate_orchestration
    for name in ("passes", "arith", "backend"):
        assert importlib.import_module(f"pypto.pypto_core.{name}") is importlib.import_module(f"pypto.{name}")

"""The forms of `@pl.jit` and the objects they make."""

from __future__ import annotations

from pathlib import Path

import pytest

import pypto.jit
import pypto.language as pl


def body(a: pl.Tensor, c: pl.Out[pl.Tensor]):
    """What it does."""
    return c


@pytest.mark.parametrize("decorate", [pl.jit, pl.jit(), pl.jit(auto_scope=False)])
def test_jit_bare_and_with_parentheses_makes_an_orchestration(decorate):
    made = decorate(body)
    assert isinstance(made, pl.JITFunction)
    assert repr(made) == "JITFunction('body', func_type='orchestration')"
    assert (made.__name__, made.__doc__, made.__module__) == ("body", "What it does.", __name__)


@pytest.mark.parametrize("kind", ["host", "incore", "inline", "opaque"])
def test_each_form_makes_its_kind(kind):
    assert getattr(pl.jit, kind)(body)._func_type == kind
    assert getattr(pl.jit, kind)()(body)._func_type == kind


def test_public_names_are_one_object():
    from pypto.jit.decorator import jit

    assert pypto.jit.jit is jit is pl.jit


def test_incore_keeps_its_level():
    assert pl.jit.incore(level=pl.Level.AIV)(body)._level is pl.Level.AIV


@pytest.mark.parametrize("form", ["host", "inline", "opaque"])
def test_level_belongs_to_incore_alone(form):
    with pytest.raises(TypeError, match=rf"@pl.jit.{form} does not accept a level= argument"):
        getattr(pl.jit, form)(level=pl.Level.HOST)


@pytest.mark.parametrize(("form", "value"), [("incore", True), ("opaque", False)])
def test_kernels_do_not_accept_auto_scope(form, value):
    with pytest.raises(TypeError, match="does not accept an auto_scope= argument"):
        getattr(pl.jit, form)(auto_scope=value)


def test_inline_accepts_auto_scope():
    assert pl.jit.inline(auto_scope=False)(body)._auto_scope is False


def test_nothing_is_parsed_at_decoration():
    @pl.jit
    def broken(a):
        lambda: a  # no DSL statement

    with pytest.raises(pl.parser.ParserTypeError, match="Parameter 'a' missing type annotation"):
        broken.lower()


def test_other_objects_than_functions_are_refused():
    with pytest.raises(TypeError, match=r"@pl.jit decorates functions, got int"):
        pl.jit(3)


def test_an_inline_function_cannot_be_an_entry():
    with pytest.raises(ValueError, match="an inline function cannot be an entry"):
        pl.jit.inline(body).lower()


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"core_type": "gpu"}, ValueError, "core_type must be 'aic', 'aiv', or 'mixed'"),
        ({"core_type": "aiv", "dual_aiv_dispatch": True}, ValueError, "requires core_type='mixed'"),
        (
            {"core_type": "mixed", "aic_source": "k.cpp"},
            ValueError,
            "requires both aic_source= and aiv",
        ),
        ({"core_type": "aic"}, ValueError, "requires source="),
        ({"source": "absent.cpp"}, ValueError, "source file not found"),
        ({"source": "k.cpp", "include_dirs": ["absent"]}, ValueError, "include directory not found"),
        ({"source": "k.cpp", "include_dirs": "here"}, TypeError, "must be a sequence of paths"),
    ],
)
def test_extern_checks_its_options_at_decoration(tmp_path, options, error, text):
    (tmp_path / "k.cpp").write_text("")
    if options.get("source") == "k.cpp":
        options = {**options, "source": tmp_path / "k.cpp"}
    with pytest.raises(error, match=text):
        pl.jit.extern(**options)(body)


def test_the_hash_of_an_external_kernel_follows_its_files(tmp_path):
    source, header = tmp_path / "k.cpp", tmp_path / "k.h"
    source.write_text('#include "k.h"\n')
    header.write_text("// one\n")

    def digest(**options):
        return pl.jit.extern(source=source, **options)(body).external.text_hash()

    first = digest()
    assert digest() == first
    header.write_text("// two\n")
    second = digest()
    source.write_text('#include "k.h"\n// more\n')
    third = digest()
    assert len({first, second, third, digest(include_dirs=[tmp_path])}) == 4


def test_a_relative_source_starts_at_the_file_of_the_stub():
    stub = pl.jit.extern(source=Path(__file__).name)(body)
    assert list(stub.external.sources.values()) == [str(Path(__file__).resolve())]

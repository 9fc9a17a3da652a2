"""Distributed tensors and windows, cross-core buffers."""

from __future__ import annotations

import pytest

import pypto.language as pl
from pypto import ir
from pypto.compile_profiling import CompileProfiler
from pypto.language.parser import InvalidOperationError, ParserSyntaxError, ParserTypeError
from tests.language.source import stmts_of

HOST = """
@pl.program
class P:
    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, x: pl.Tensor[[64], pl.FP32]):
        {body}
        return x
"""


def host(body: str) -> list[ir.Stmt]:
    program = pl.parse_program(HOST.format(body=body))
    return stmts_of(program.get_function("host").body)


def test_window_buffer_is_named_after_its_variable():
    buffer, window, _ = host(
        "buf = pld.alloc_window_buffer(256)\n        w = pld.window(buf, [64], dtype=pl.FP32)"
    )
    assert buffer.value.kwargs["name"] == "buf"
    assert isinstance(window.var.type, ir.DistributedTensorType)
    shaped = host("buf: pl.Ptr = pld.tensor.alloc_window_buffer([64], dtype=pl.FP32)")[0]
    assert shaped.value.op.name == "pld.tensor.alloc_window_buffer"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("pld.alloc_window_buffer(256)", "must appear as the RHS of a simple assignment"),
        ("a, b = pld.alloc_window_buffer(256)", "must be assigned to a single variable name"),
        ("x[0:4] = pld.alloc_window_buffer(256)", "must be assigned to a single variable name"),
        ("a = pld.alloc_window_buffer(256, name='a')", "'name' kwarg cannot be passed explicitly"),
        (
            "a = pld.alloc_window_buffer(256)\n        a = pld.alloc_window_buffer(256)",
            "is already declared in this",
        ),
        (
            "with pl.at(level=pl.Level.CORE_GROUP):\n            a = pld.alloc_window_buffer(256)",
            "can only be called in HOST orchestration context, not inside an InCore or Spmd scope",
        ),
    ],
)
def test_misplaced_window_buffers(body, message):
    with pytest.raises(ParserSyntaxError, match=message):
        host(body)


def test_host_only_operations_elsewhere():
    for call in ("a = pld.alloc_window_buffer(256)", "n = pld.world_size()"):
        with pytest.raises(ParserSyntaxError, match="can only be called in HOST orchestration context"):
            pl.parse(f"@pl.function\ndef f(x: pl.Tensor[[64], pl.FP32]):\n    {call}\n    return x\n")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            "pld.alloc_window_buffer(64, dtype=pl.FP32)",
            "dtype= is only valid when the first argument is a shape",
        ),
        ("pld.alloc_window_buffer([8])", "requires dtype="),
        ("pld.alloc_window_buffer([], dtype=pl.FP32)", "shape must be non-empty"),
        ("pld.alloc_window_buffer([0, 4], dtype=pl.FP32)", "all dimensions must be positive"),
        ("pld.window(x, [4], dtype=pl.FP32)", "Ptr handle"),
        ("pld.world_size(1)", "world_size"),
        ("pld.get_comm_ctx(dist_tensor=x)", "get_comm_ctx"),
        ("pld.get_comm_ctx(x)", "DistributedTensor"),
        ("pld.rank(x)", "CommCtx"),
        ("pld.tensor.allreduce(x, None)", "signal cannot be None"),
        ("pld.tensor.allreduce(x, signal=None)", "signal cannot be None"),
        ("pld.tensor.allreduce(x, x, root=1)", "unexpected keyword argument 'root'"),
        ("pld.put(x)", r"Unknown distributed operation 'pld\.put'"),
    ],
)
def test_operands_of_window_operations_are_checked_where_they_are_written(call, message):
    with pytest.raises(InvalidOperationError, match=message):
        host(f"a = {call}")


def test_a_buffer_name_is_unique_in_the_program():
    second = (
        HOST.format(body="buf = pld.alloc_window_buffer(256)").replace("def host", "def other").splitlines()
    )
    with pytest.raises(ParserSyntaxError, match="Window buffer 'buf' is already declared in this program"):
        pl.parse_program(
            HOST.format(body="buf = pld.alloc_window_buffer(64)") + "\n".join(["", *second[3:], ""])
        )


def test_the_size_of_a_shaped_buffer_is_one_constant_unless_an_extent_is_dynamic():
    (static, dynamic, loop, _) = host(
        "a = pld.alloc_window_buffer([16, 8], dtype=pl.FP32)\n"
        "        b = pld.alloc_window_buffer([pld.world_size(), 8], dtype=pl.FP32)\n"
        "        for i in pl.range(pld.world_size()):\n            y = pl.add(x, 1.0)"
    )
    size = static.value.args[0]
    assert isinstance(size, ir.ConstInt) and (size.value, size.dtype) == (512, ir.INT64)
    product = dynamic.value.args[0]
    assert isinstance(product, ir.Mul) and product.type.dtype is ir.INT64
    assert loop.stop.op.name == "pld.system.world_size"


def test_distributed_annotations():
    f = pl.parse(
        "@pl.function\ndef f(a: pld.DistributedTensor[[64], pl.FP32], "
        "b: pld.DistributedTensor[[64], pl.FP32, 'window_buffer=w'], c: pld.CommCtx):\n    return a\n"
    )
    a, b, c = (param.type for param in f.params)
    assert a == b == ir.DistributedTensorType([64], ir.DataType.FP32)
    assert isinstance(c, ir.CommCtxType)


def test_plain_tensor_may_be_written_into_a_distributed_one_but_annotation_must_agree():
    params = "d: pld.DistributedTensor[[64], pl.FP32], x: pl.Tensor[[64], pl.FP32]"
    pl.parse(f"@pl.function\ndef f({params}):\n    d[0:64] = x\n    return d\n")
    with pytest.raises(ParserTypeError, match="is Tensor but expression has type DistributedTensorType"):
        pl.parse(f"@pl.function\ndef f({params}):\n    y: pl.Tensor[[64], pl.FP32] = d\n    return y\n")


def test_imported_buffer_takes_the_base_of_the_peers_reservation():
    program = pl.parse_program(
        """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.AIV)
    def v(self, x: pl.Tensor[[16, 16], pl.FP32]):
        pf = pl.import_peer_buffer(name="c2v", peer_func="c")
        other = pl.import_peer_buffer(name="c2v", peer_func="nobody")
        pl.aiv_initialize_pipe(c2v_consumer_buf=pf.base,
            v2c_consumer_buf=other.base, dir_mask=1, slot_size=512)
    @pl.function(type=pl.FunctionType.AIC)
    def c(self, x: pl.Tensor[[16, 16], pl.FP32]):
        b = pl.reserve_buffer(name="c2v", size=4096, base=8192)
        pl.aic_initialize_pipe(v2c_consumer_buf=b.base, dir_mask=1, slot_size=512)
"""
    )
    initialize = stmts_of(program.get_function("v").body)[2].expr
    assert [arg.value for arg in initialize.args] == [8192, -1]
    local = stmts_of(program.get_function("c").body)[1].expr
    assert 8192 in [arg.value for arg in local.args]


def test_unknown_distributed_operations_name_the_namespace():
    for call, message in (
        ("pld.tensor.nothing(x)", r"Unknown distributed operation 'pld\.tensor\.nothing'"),
        ("pld.system.nothing()", r"Unknown distributed operation 'pld\.system\.nothing'"),
    ):
        with pytest.raises(InvalidOperationError, match=message):
            host(f"a = {call}")


def test_parsing_a_program_is_a_profiled_stage():
    with CompileProfiler() as profiler:
        host("pass")
    assert "parse" in profiler.summary()

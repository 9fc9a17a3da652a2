"""What a call accepts, what it says to the rest, and what arrives."""

from __future__ import annotations

import ctypes
import dataclasses
import struct
import warnings
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pypto import DataType, ir
from pypto.runtime.arguments import ArgumentBinder
from pypto.runtime.metadata import CallSignature, ParamInfo, SharedExtent

In, Out, InOut = ir.ParamDirection.In, ir.ParamDirection.Out, ir.ParamDirection.InOut
LAYOUT = struct.Struct("=QQQ5I5III")


def tensor(
    name: str,
    shape: Sequence[int],
    direction: ir.ParamDirection = In,
    dtype: DataType = DataType.FP32,
) -> ParamInfo:
    return ParamInfo(name, direction, list(shape), dtype)


def scalar(name: str, dtype: DataType) -> ParamInfo:
    return ParamInfo(name, In, None, dtype)


def binder(*params: ParamInfo, returns: int = 1, shared: tuple[SharedExtent, ...] = ()) -> ArgumentBinder:
    return ArgumentBinder(CallSignature(params, returns, shared))


class TorchLike:
    """A tensor of another library, recognised by what it offers."""

    def __init__(self, array: np.ndarray[Any, Any], **changes: Any) -> None:
        self._array = array
        self.shape = array.shape
        self.dtype = f"torch.{array.dtype.name}"
        self.device = type("device", (), {"type": "cpu", "__str__": lambda self: "cpu"})()
        self.requires_grad = False
        for name, value in changes.items():
            setattr(self, name, value)

    def data_ptr(self) -> int:
        return int(self._array.__array_interface__["data"][0])

    def is_contiguous(self) -> bool:
        return bool(self._array.flags.c_contiguous)


def zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    return np.zeros(shape, dtype)


ABNO = (tensor("a", [4, 8]), scalar("n", DataType.INT32), tensor("o", [4, 8], Out))


# ---------------------------------------------------------------- counts and styles


def test_arrays_are_taken_in_place_with_tensors_and_scalars_apart() -> None:
    a, o = zeros(4, 8), zeros(4, 8)
    bound = binder(*ABNO).bind((a, 7, o))
    assert bound.addresses == [a.ctypes.data, o.ctypes.data]
    assert bound.scalars == [7] and bound.result is None
    first = LAYOUT.unpack(bound.layouts[: LAYOUT.size])
    assert first == (0, 128, 0, 4, 8, 0, 0, 0, 8, 1, 0, 0, 0, 2, 0)


def test_outputs_left_out_are_made_and_returned_in_parameter_order() -> None:
    one = binder(*ABNO).bind((zeros(4, 8), 7))
    assert one.result.shape == (4, 8) and one.result.dtype == np.float32 and not one.result.any()
    assert one.addresses[1] == one.result.ctypes.data
    params = (tensor("p", [2], Out), tensor("a", [4]), tensor("q", [3], Out, DataType.BF16))
    two = binder(*params).bind((zeros(4),))
    assert [r.shape for r in two.result] == [(2,), (3,)]
    assert two.result[1].dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize("count", [0, 1, 4])
def test_wrong_count_names_the_allowed_ones(count: int) -> None:
    expected = (
        rf"CompiledProgram expects 3 \(in-place\) or 2 \(return\) arguments, got {count}\. "
        r"Parameters: \['a', 'n', 'o'\]"
    )
    with pytest.raises(TypeError, match=expected):
        binder(*ABNO).bind([zeros(4, 8)] * count)


def test_program_without_outputs_or_returns_has_one_style() -> None:
    with pytest.raises(TypeError, match=r"expects 2 \(in-place\) arguments, got 1"):
        binder(tensor("a", [4]), tensor("b", [4], InOut)).bind((zeros(4),))
    with pytest.raises(TypeError, match=r"expects 2 \(in-place\) arguments, got 1"):
        binder(tensor("a", [4]), tensor("b", [4], Out), returns=0).bind((zeros(4),))


def test_dynamic_output_must_be_passed() -> None:
    program = binder(tensor("a", [-1, 8]), tensor("o", [-1, 8], Out))
    with pytest.raises(ValueError, match=r"contains dynamic dimensions. Pass all tensors explicitly"):
        program.bind((zeros(4, 8),))


# ---------------------------------------------------------------- tensors


def test_dynamic_dims_take_any_extent_and_static_ones_do_not() -> None:
    program = binder(tensor("a", [-1, 8]))
    for rows in (1, 5, 0):
        layout = LAYOUT.unpack(program.bind((zeros(rows, 8),)).layouts)
        assert layout[3:5] == (rows, 8)
    with pytest.raises(TypeError, match=r"Parameter 'a' expects shape \[\?, 8\]; got \[4, 9\]"):
        program.bind((zeros(4, 9),))


@pytest.mark.parametrize("shape", [(8, 4), (4, 8, 1), (32,), ()])
def test_wrong_shape_is_named(shape: tuple[int, ...]) -> None:
    with pytest.raises(TypeError, match=r"Parameter 'a' expects shape \[4, 8\]; got \["):
        binder(tensor("a", [4, 8])).bind((zeros(*shape),))


def test_wrong_dtype_is_named() -> None:
    with pytest.raises(TypeError, match="Parameter 'a' expects dtype fp32; got float64"):
        binder(tensor("a", [4])).bind((zeros(4, dtype=np.float64),))
    with pytest.raises(TypeError, match="expects dtype bfloat16; got uint16"):
        binder(tensor("a", [4], dtype=DataType.BF16)).bind((zeros(4, dtype=np.uint16),))
    with pytest.raises(TypeError, match="got float32 in foreign byte order"):
        binder(tensor("a", [4])).bind((zeros(4, dtype=">f4"),))


def test_memory_that_cannot_be_used_is_refused() -> None:
    program = binder(tensor("a", [4]), tensor("o", [4], Out))
    frozen = zeros(4)
    frozen.flags.writeable = False
    program.bind((frozen, zeros(4)))
    with pytest.raises(ValueError, match="Parameter 'o' is written, but its array is read-only"):
        program.bind((zeros(4), frozen))
    with pytest.raises(ValueError, match=r"position 1 is not contiguous. .*'o' is written in place"):
        program.bind((zeros(4), zeros(8)[::2]))
    with pytest.raises(ValueError, match=r"position 0 is not contiguous. .*'a' pass .*ascontiguousarray"):
        program.bind((zeros(8)[::2], zeros(4)))


@pytest.mark.parametrize("value", [[1.0] * 4, 3, None, "x", np.float32(1), object()])
def test_other_values_for_a_tensor_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match=r"Parameter 'a' is a tensor; got .*Pass a torch.Tensor"):
        binder(tensor("a", [4])).bind((value,))


def test_torch_like_tensors_are_used_in_place() -> None:
    array = zeros(4)
    program = binder(tensor("a", [4], InOut))
    assert program.bind((TorchLike(array),)).addresses == [array.ctypes.data]
    with pytest.raises(TypeError, match="expects dtype fp32; got float64"):
        program.bind((TorchLike(zeros(4, dtype=np.float64)),))
    text = r"Tensor at position 0 is not contiguous. Call .contiguous\(\) on the tensor of parameter 'a'"
    with pytest.raises(ValueError, match=text):
        program.bind((TorchLike(zeros(8)[::2]),))
    with pytest.raises(ValueError, match="its tensor requires grad"):
        program.bind((TorchLike(array, requires_grad=True),))
    gpu = type("device", (), {"type": "cuda", "__str__": lambda self: "cuda:0"})()
    with pytest.raises(ValueError, match="Tensor at position 0 is on cuda:0, expected CPU"):
        program.bind((TorchLike(array, device=gpu),))
    binder(tensor("a", [4], In)).bind((TorchLike(array, requires_grad=True),))


def test_array_protocols_and_subclasses_are_used_in_place(tmp_path: Any) -> None:
    mapped = np.memmap(tmp_path / "data", np.float32, "w+", shape=(4,))
    array = zeros(4)
    protocol = type("Foreign", (), {"__array_interface__": array.__array_interface__})()
    program = binder(tensor("a", [4], InOut))
    assert program.bind((mapped,)).addresses == [mapped.ctypes.data]
    assert program.bind((protocol,)).addresses == [array.ctypes.data]


@pytest.mark.parametrize(
    ("dtype", "array"),
    [
        (DataType.FP16, np.float16),
        (DataType.BF16, ml_dtypes.bfloat16),
        (DataType.FP8E4M3FN, ml_dtypes.float8_e4m3fn),
        (DataType.BOOL, np.bool_),
        (DataType.INDEX, np.int64),
        (DataType.UINT8, np.uint8),
    ],
)
def test_element_types_have_their_arrays(dtype: DataType, array: Any) -> None:
    binder(tensor("a", [4], dtype=dtype)).bind((np.zeros(4, array),))


def test_packed_fp4_counts_bytes_in_the_last_dim() -> None:
    program = binder(tensor("a", [4, 8], dtype=DataType.FP4))
    program.bind((zeros(4, 4, dtype=np.uint8),))
    with pytest.raises(TypeError, match=r"expects shape \[4, 4\]"):
        program.bind((zeros(4, 8, dtype=np.uint8),))


def test_rank_above_five_is_refused() -> None:
    with pytest.raises(TypeError, match="'a' has rank 6"):
        binder(tensor("a", [1] * 6))


# ---------------------------------------------------------------- scalars


@pytest.mark.parametrize(
    ("dtype", "value", "bits"),
    [
        (DataType.INT32, -1, 0xFFFFFFFF),
        (DataType.INT32, np.int64(5), 5),
        (DataType.INT64, -(1 << 63), 1 << 63),
        (DataType.INT8, -128, 0x80),
        (DataType.UINT64, (1 << 64) - 1, (1 << 64) - 1),
        (DataType.INDEX, 12, 12),
        (DataType.BOOL, True, 1),
        (DataType.BOOL, np.False_, 0),
        (DataType.FP32, 1, 0x3F800000),
        (DataType.FP32, np.float64(-0.5), 0xBF000000),
        (DataType.FP32, float("inf"), 0x7F800000),
        (DataType.FP16, 1.0, 0x3C00),
        (DataType.BF16, 1.0, 0x3F80),
        (DataType.BF16, 1.00390625, 0x3F80),  # a tie rounds to even
        (DataType.BF16, 1.01171875, 0x3F82),
        (DataType.INT32, ctypes.c_int32(-2), 0xFFFFFFFE),
        (DataType.FP32, ctypes.c_float(1.0), 0x3F800000),
        (DataType.BF16, ctypes.c_uint16(0x1234), 0x1234),
        (DataType.FP16, ctypes.c_float(1.0), 0x3C00),
        (DataType.BOOL, ctypes.c_bool(True), 1),
        (DataType.INT8, ctypes.c_int8(-3), 0xFD),
        (DataType.INT16, ctypes.c_int16(-3), 0xFFFD),
        (DataType.INT64, ctypes.c_int64(-3), 0xFFFFFFFFFFFFFFFD),
        (DataType.UINT8, ctypes.c_uint8(200), 200),
        (DataType.UINT16, ctypes.c_uint16(60000), 60000),
        (DataType.UINT32, ctypes.c_uint32(1 << 31), 1 << 31),
        (DataType.UINT64, ctypes.c_uint64(1 << 63), 1 << 63),
        (DataType.INDEX, ctypes.c_int64(7), 7),
        (DataType.FP16, ctypes.c_uint16(0x3E00), 0x3E00),
        (DataType.BF16, ctypes.c_float(1.0), 0x3F80),
    ],
)
def test_scalars_become_the_bits_of_their_type(dtype: DataType, value: Any, bits: int) -> None:
    assert binder(scalar("n", dtype)).bind((value,)).scalars == [bits]


def test_nan_stays_nan() -> None:
    bf16, fp16 = (
        binder(scalar("n", d)).bind((float("nan"),)).scalars[0] for d in (DataType.BF16, DataType.FP16)
    )
    assert bf16 & 0x7F80 == 0x7F80 and bf16 & 0x7F
    assert fp16 & 0x7C00 == 0x7C00 and fp16 & 0x3FF


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (DataType.INT8, 128),
        (DataType.UINT8, -1),
        (DataType.INT64, 1 << 63),
        (DataType.BOOL, 2),
        (DataType.FP32, 1e300),
        (DataType.FP16, 1e6),
    ],
)
def test_scalar_out_of_range_is_a_value_error(dtype: DataType, value: Any) -> None:
    with pytest.raises(ValueError, match=r"Parameter 'n': .* is out of range for dtype"):
        binder(scalar("n", dtype)).bind((value,))


@pytest.mark.parametrize(
    ("dtype", "value", "got"),
    [
        (DataType.INT32, 1.0, "float"),
        (DataType.INT32, "1", "str"),
        (DataType.FP32, None, "NoneType"),
        (DataType.INT32, TorchLike(np.zeros(())), "torch.Tensor"),
        (DataType.FP32, np.zeros(()), "ndarray"),
    ],
)
def test_other_values_for_a_scalar_are_refused(dtype: DataType, value: Any, got: str) -> None:
    with pytest.raises(TypeError, match=rf"Parameter 'n' is a scalar \({dtype}\); got {got}"):
        binder(scalar("n", dtype)).bind((value,))


def test_ctypes_values_must_have_the_exact_type() -> None:
    with pytest.raises(TypeError, match="Parameter 'n' expects c_int for dtype int32; got c_long"):
        binder(scalar("n", DataType.INT32)).bind((ctypes.c_long(1),))
    with pytest.raises(TypeError, match="expects c_float for dtype fp32; got c_double"):
        binder(scalar("n", DataType.FP32)).bind((ctypes.c_double(1),))


# ---------------------------------------------------------------- RunConfig


def test_run_config_has_the_documented_fields_in_order() -> None:
    from pypto.backend import BackendType
    from pypto.ir import OptimizationStrategy
    from pypto.runtime import RunConfig

    assert [(f.name, getattr(RunConfig(), f.name)) for f in dataclasses.fields(RunConfig)] == [
        ("platform", "a2a3sim"),
        ("device_id", 0),
        ("rtol", 1e-5),
        ("atol", 1e-5),
        ("strategy", OptimizationStrategy.Default),
        ("backend_type", BackendType.Ascend910B),
        ("dump_passes", False),
        ("save_kernels", False),
        ("save_kernels_dir", None),
        ("codegen_only", False),
        ("enable_chip_swimlane", 0),
        ("enable_dump_args", 0),
        ("enable_pmu", 0),
        ("enable_dep_gen", False),
        ("enable_scope_stats", False),
        ("compile_profiling", False),
        ("diagnostic_phase", None),
        ("disabled_diagnostics", None),
        ("golden_data_dir", None),
        ("aicpu_thread_num", None),
        ("ring_task_window", None),
        ("ring_heap", None),
        ("ring_dep_pool", None),
        ("distributed_config", None),
        ("analyze_auto_scopes_for_deps", False),
        ("memory_planner", None),
        ("dump_ptoas_passes", False),
    ]
    assert RunConfig("a5", 3, 1e-3).rtol == 1e-3


def test_backend_follows_the_platform() -> None:
    from pypto.backend import BackendType
    from pypto.runtime import RunConfig

    assert RunConfig("a5sim").backend_type is BackendType.Ascend950
    assert (
        RunConfig(platform="a2a3", backend_type=BackendType.Ascend950).backend_type is BackendType.Ascend910B
    )
    with pytest.raises(ValueError, match="Invalid platform 'b7'"):
        RunConfig("b7")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("ring_heap", 1000, r"ring_heap must be a power of 2 >= 1024 \(bytes per ring\), got 1000"),
        ("ring_heap", 0, "ring_heap must be a power of 2"),
        ("ring_task_window", 3, "ring_task_window must be a power of 2 >= 4"),
        ("ring_task_window", True, "ring_task_window must be a power of 2 >= 4"),
        ("ring_task_window", 4.0, "ring_task_window must be a power of 2 >= 4"),
        ("ring_dep_pool", 1 << 31, r"ring_dep_pool must be in \[4, INT32_MAX\]"),
        ("ring_dep_pool", 3, r"ring_dep_pool must be in \[4, INT32_MAX\]"),
        ("ring_dep_pool", 0, r"ring_dep_pool must be in \[4, INT32_MAX\]"),
        ("ring_heap", "1024", "ring_heap must be a power of 2"),
        ("ring_task_window", [4, 0, True, 4], "ring_task_window entries must be"),
        ("ring_dep_pool", (4, 4, 4, 3), "ring_dep_pool entries must be"),
        ("ring_heap", [1024], "ring_heap must have exactly 4 entries"),
        ("ring_heap", [1024, 0, 0, 5], r"ring_heap entries must be .* \(or 0 to keep default\)"),
        ("device_id", -1, "device_id must not be negative"),
        ("enable_chip_swimlane", 5, "collection level in"),
    ],
)
def test_run_config_refuses_wrong_settings(name: str, value: Any, message: str) -> None:
    from pypto.runtime import RunConfig

    with pytest.raises(ValueError, match=message):
        RunConfig(**{name: value})


def test_run_config_diagnostics_and_old_names() -> None:
    from pypto.runtime import RunConfig

    assert RunConfig(ring_heap=(1024, 0, 0, 2048)).ring_heap == [1024, 0, 0, 2048]
    config = RunConfig(enable_chip_swimlane=True)  # type: ignore[arg-type]
    assert config.enable_chip_swimlane == 4 and config.save_kernels and config.any_dfx_enabled()
    for name in ("enable_dump_args", "enable_pmu", "enable_dep_gen", "enable_scope_stats"):
        config = RunConfig(**{name: 1})  # type: ignore[arg-type]
        assert config.save_kernels and config.any_dfx_enabled()
    assert not RunConfig(enable_chip_swimlane=False).save_kernels
    with pytest.raises(TypeError, match="must be an int"):
        RunConfig(enable_chip_swimlane="x")  # type: ignore[arg-type]
    with pytest.warns(DeprecationWarning):
        old = RunConfig(enable_l2_swimlane=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert old.enable_l2_swimlane == 2 == old.enable_chip_swimlane
        assert dataclasses.replace(old, enable_chip_swimlane=3).enable_chip_swimlane == 3
    with pytest.warns(DeprecationWarning):
        old.enable_l2_swimlane = 1
    assert old.enable_chip_swimlane == 1
    with pytest.raises(ValueError, match="pass only enable_chip_swimlane"):
        RunConfig(enable_chip_swimlane=1, enable_l2_swimlane=1)


def test_run_options_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    from pypto.runtime.run_config import run_options

    monkeypatch.setenv("PYPTO_WORKERS", "3")
    monkeypatch.setenv("PYPTO_CHECKED", "1")
    assert run_options().workers == 3 and run_options().checked
    for text in ("0", "many", "-1"):
        monkeypatch.setenv("PYPTO_WORKERS", text)
        with pytest.raises(ValueError, match="PYPTO_WORKERS must be a number"):
            run_options()


# ---------------------------------------------------------------- extents that belong together


def test_dimensions_of_one_symbol_have_one_extent() -> None:
    shared = (SharedExtent("M", ((1, 0), (2, 1))),)
    params = (scalar("n", DataType.INT32), tensor("a", [-1, 4]), tensor("o", [4, -1], Out))
    bound = binder(*params, shared=shared)
    bound.bind([1, zeros(8, 4), zeros(4, 8)])
    with pytest.raises(ValueError, match="'o' has extent 2 in dimension 1, but M is 8 in parameter 'a'"):
        bound.bind([1, zeros(8, 4), zeros(4, 2)])


def test_packed_dimensions_are_no_measure_for_others() -> None:
    shared = (SharedExtent("M", ((0, 0), (1, 0))),)
    packed = tensor("a", [-1, 4], dtype=DataType.FP4)
    binder(packed, tensor("b", [-1, 4]), shared=shared).bind([zeros(8, 2, dtype=np.uint8), zeros(8, 4)])

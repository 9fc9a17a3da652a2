"""C++ identifiers of the generated text.

A variable takes the part of its hint before `__` (suffixes of SSA form and of passes fall away); when that is
taken, its whole hint; then numbers. Two variables never share an identifier unless one *is* the other's
value.
"""

from __future__ import annotations

import re

from pypto.ir.expr import Var

__all__ = ["Names", "base_name"]

_KEYWORD_TEXT = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t class compl
const const_cast constexpr continue decltype default delete do double dynamic_cast else enum explicit export
extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr
operator or or_eq private protected public register reinterpret_cast return short signed sizeof static
static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename
union unsigned using virtual void volatile wchar_t while xor xor_eq
"""
_KEYWORDS = frozenset(_KEYWORD_TEXT.split())
_API_TEXT = """
aicpu_orchestration_config aicpu_orchestration_entry orch_args alloc_tensors from_u64 to_u64 get_tensor_data
set_tensor_data rt_submit_aic_task rt_submit_aiv_task rt_submit_task rt_submit_dummy_task rt_scope_begin
rt_scope_end rt_available_cluster_count rt_available_aiv_count rt_is_fatal rt_report_fatal
rt_orchestration_done half bfloat16_t float8_e4m3_t float8_e5m2_t float8_e8m0_t float4_e2m1x2_t int8_t
int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t ptrdiff_t std main printf snprintf
vsnprintf stdin stdout stderr NULL EOF floor_div floor_mod int_pow va_list va_start va_end va_arg va_copy
offsetof errno
"""
_API_NAMES = frozenset(_API_TEXT.split())
_PATTERNS = re.compile(
    r"ext_\w*|params_\w*|task_\d+_outs|alloc_\d+|mixed_\d+|phase_fence_barrier_\w*|indices_\w*|pypto_\w*|PTO2\w*"
    r"|Pypto\w*|PYPTO_\w*|INT\d+_\w*|UINT\d+_\w*|LOG_\w+|DEP_\w+|INVALID_KERNEL_ID"
    r"|\w*(_ci|_ci_shapes|_offsets|_shapes|_view|_next)|__\w*|_[A-Z]\w*"
    r"|Chip\w*|CoreTask\w*|Task\w*|Tensor\w*|DataType|MixedKernels|PredicateOp|LaunchSpec"
)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def base_name(hint: str) -> str:
    """The hint up to its first `__`."""
    return hint.partition("__")[0]


class Names:
    """The identifiers in use. Each is given out once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._counters: dict[str, int] = {}

    def of_variable(self, var: Var, fallback: str = "v") -> str:
        """A fresh identifier after the variable's hint; `fallback` stands for an empty base."""
        hint = var.name_hint
        base = base_name(hint)
        if not base.strip("_"):
            return self.unique(fallback)
        is_output = hint.startswith(f"{base}__out") and hint.split("__")[1] == "out"
        if is_output or self._legal(base) in self._taken:
            return self.unique(hint)
        return self.unique(base)

    def unique(self, wanted: str) -> str:
        """`wanted` made legal, or with the first free number after it."""
        return self._first_free(self._legal(wanted))

    def derived(self, wanted: str) -> str:
        """A fresh identifier of one of the generated patterns, which variables cannot take."""
        return self._first_free(re.sub(r"\W", "_", wanted, flags=re.ASCII))

    def _first_free(self, wanted: str) -> str:
        name = wanted
        count = self._counters.get(wanted, 0)
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._counters[wanted] = count
        self._taken.add(name)
        return name

    @staticmethod
    def _legal(wanted: str) -> str:
        name = re.sub(r"\W", "_", wanted, flags=re.ASCII)
        if not _IDENTIFIER.match(name):
            name = f"v_{name}"
        if name in _KEYWORDS or name in _API_NAMES or _PATTERNS.fullmatch(name):
            name += "_"
        return name

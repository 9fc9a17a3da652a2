// Which bytes a tensor view touches, and how two views relate.
//
// A region is kept as a set of elements, whatever the order of its dims: unit dims are dropped and the others
// sorted by stride, so a transposed view or one with extra unit dims compares like the plain one. The test is
// exact when both regions are boxes of one row-major grid, and conservative (Partial) otherwise.
#pragma once

#include "pto_orchestration_api.h"

namespace pypto {

enum class Overlap { None, Partial, Covered };

struct Region {
    uint64_t lo = 0;  // first byte, relative to the tensor's space
    uint64_t hi = 0;  // one past the last byte; equal to lo when the view is empty
    uint32_t element = 1;
    uint8_t rank = 0;
    bool dense = true;  // no holes between lo and hi
    uint32_t shape[PYPTO_MAX_DIMS] = {};
    uint32_t stride[PYPTO_MAX_DIMS] = {};

    bool empty() const { return lo == hi; }
};

inline Region region_of(const ChipTensor& t) {
    Region r;
    r.element = pypto_element_bytes(t.dtype);
    r.lo = t.buffer.addr - t.space + t.start_offset * r.element;
    uint64_t last = 0;
    for (uint32_t k = 0; k < t.ndims; ++k) {
        if (t.shapes[k] == 0) {
            r.hi = r.lo;
            return r;
        }
        if (t.shapes[k] == 1) continue;
        last += uint64_t{t.shapes[k] - 1} * t.strides[k];
        uint32_t place = r.rank++;
        for (; place > 0 && r.stride[place - 1] < t.strides[k]; --place) {
            r.shape[place] = r.shape[place - 1];
            r.stride[place] = r.stride[place - 1];
        }
        r.shape[place] = t.shapes[k];
        r.stride[place] = t.strides[k];
    }
    r.hi = r.lo + (last + 1) * r.element;
    uint64_t expected = 1;
    for (uint32_t k = r.rank; k-- > 0;) {
        r.dense = r.dense && r.stride[k] == expected;
        expected *= r.shape[k];
    }
    return r;
}

inline bool same_layout(const Region& a, const Region& b) {
    if (a.lo != b.lo || a.hi != b.hi || a.element != b.element || a.rank != b.rank) return false;
    for (uint32_t k = 0; k < a.rank; ++k) {
        if (a.shape[k] != b.shape[k] || a.stride[k] != b.stride[k]) return false;
    }
    return true;
}

// Both regions as boxes over the union of their strides. Partial when they are no such boxes.
inline Overlap compare_boxes(const Region& a, const Region& b) {
    if (a.lo % a.element != 0 || b.lo % b.element != 0) return Overlap::Partial;
    uint64_t rest_a = a.lo / a.element;
    uint64_t rest_b = b.lo / b.element;
    uint64_t outer = 0;  // the stride of the previous dim; 0 before the first
    bool covered = true;
    bool disjoint = false;
    uint32_t ia = 0, ib = 0;
    while (ia < a.rank || ib < b.rank) {
        uint32_t sa = ia < a.rank ? a.stride[ia] : 0;
        uint32_t sb = ib < b.rank ? b.stride[ib] : 0;
        uint32_t step = sa > sb ? sa : sb;
        uint64_t na = sa == step ? a.shape[ia++] : 1;
        uint64_t nb = sb == step ? b.shape[ib++] : 1;
        if (step == 0 || (outer != 0 && (outer % step != 0 || outer == step))) return Overlap::Partial;
        uint64_t ca = rest_a / step, cb = rest_b / step;
        rest_a %= step;
        rest_b %= step;
        if (outer != 0 && (ca + na > outer / step || cb + nb > outer / step)) return Overlap::Partial;
        disjoint = disjoint || ca >= cb + nb || cb >= ca + na;
        covered = covered && ca <= cb && ca + na >= cb + nb;
        outer = step;
    }
    if (disjoint || rest_a != rest_b) return Overlap::None;
    return covered ? Overlap::Covered : Overlap::Partial;
}

// How `mine` lies on `other`: Covered means that every byte of `other` is in `mine`.
inline Overlap compare(const Region& mine, const Region& other) {
    if (mine.lo >= other.hi || other.lo >= mine.hi) return Overlap::None;
    if (mine.dense && mine.lo <= other.lo && mine.hi >= other.hi) return Overlap::Covered;
    if (same_layout(mine, other)) return Overlap::Covered;
    if (mine.element != other.element) return Overlap::Partial;
    return compare_boxes(mine, other);
}

}  // namespace pypto

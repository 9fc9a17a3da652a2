// Elements, rows and blocks picked by index, by pattern or by comparison, and the inverse scatters.
#pragma once

#include "pypto_kernel.h"

namespace pypto {

// Columns [a | b]; b starts where the valid columns of a end.
template <typename T, int R, int C, int C0, int RS0, int CS0, int C1, int RS1, int CS1>
PYPTO_INLINE void concat(const Tile<T, R, C>& out, const Tile<T, R, C0, RS0, CS0>& a, const Tile<T, R, C1, RS1, CS1>& b) {
    const int64_t first = clip(a.valid_cols, 0, C0);
    clear_outside(out, R, first);
    for (int64_t i = 0; i < R; ++i) {
        copy_row(out.row(i), 1, a.row(i), CS0, first);
        copy_row(out.row(i) + first, 1, b.row(i), CS1, C1);
    }
}

// out[i, j] := src.flat[index[i, j]], 0 outside.
template <typename T, int R, int C, int RS, int SR, int SC, int SRS, int SCS, typename I, int IRS, int ICS>
PYPTO_INLINE void gather_flat(const Tile<T, R, C, RS>& out, const Tile<T, SR, SC, SRS, SCS>& src,
                              const Tile<I, R, C, IRS, ICS>& index) {
    for (int64_t i = 0; i < R; ++i) {
        for (int64_t j = 0; j < C; ++j) {
            const int64_t at = static_cast<int64_t>(index.at(i, j));
            const bool inside = at >= 0 && at < int64_t{SR} * SC;
            out.at(i, j) = inside ? src.at(at / SC, at % SC) : convert<T>(0);
        }
    }
}

// dst.flat[index[i, j]] := src[i, j]; the last write wins, indices outside are dropped.
template <typename T, int R, int C, int RS, int CS, int SR, int SC, int SRS, int SCS, typename I, int IRS, int ICS>
PYPTO_INLINE void scatter_flat(const Tile<T, R, C, RS, CS>& dst, const Tile<T, SR, SC, SRS, SCS>& src,
                               const Tile<I, SR, SC, IRS, ICS>& index) {
    for (int64_t i = 0; i < src.valid_rows; ++i) {
        for (int64_t j = 0; j < src.valid_cols; ++j) {
            const int64_t at = static_cast<int64_t>(index.at(i, j));
            if (at >= 0 && at < int64_t{R} * C) dst.at(at / C, at % C) = src.at(i, j);
        }
    }
}

// dst[index.flat[k], :] := src[k, :] in the order of k.
template <typename T, int R, int C, int RS, int SR, int SRS, typename I, int IR, int IC, int IRS, int ICS>
PYPTO_INLINE void scatter_rows(const Tile<T, R, C, RS>& dst, const Tile<I, IR, IC, IRS, ICS>& index,
                               const Tile<T, SR, C, SRS>& src) {
    for (int64_t i = 0; i < index.valid_rows; ++i) {
        for (int64_t j = 0; j < index.valid_cols; ++j) {
            const int64_t row = static_cast<int64_t>(index.at(i, j));
            const int64_t k = i * IC + j;
            if (row >= 0 && row < R && k < SR) copy_row(dst.row(row), 1, src.row(k), 1, C);
        }
    }
}

// The columns that a mask pattern selects: every STEP-th, from FIRST. The bits are kept.
template <int FIRST, int STEP, typename T, int R, int C, int RS, typename S, int SC, int SRS, int SCS>
PYPTO_INLINE void gather_columns(const Tile<T, R, C, RS>& out, const Tile<S, R, SC, SRS, SCS>& src) {
    for (int64_t i = 0; i < R; ++i) {
        for (int64_t j = 0; j < C; ++j) out.at(i, j) = bit_cast<T>(src.at(i, FIRST + j * STEP));
    }
}

template <int FIRST, int STEP, typename T, int R, int C, int RS, int CS, int SC, int SRS, int SCS>
PYPTO_INLINE void scatter_columns(const Tile<T, R, C, RS, CS>& dst, const Tile<T, R, SC, SRS, SCS>& src) {
    for (int64_t i = 0; i < R; ++i) {
        for (int64_t j = 0; j < SC; ++j) dst.at(i, FIRST + j * STEP) = src.at(i, j);
    }
}

// Block (r, b) of 32 bytes := the bytes of src from offset[r, b].
template <typename T, int R, int C, typename S, int SR, int SC, int BC, int ORS>
PYPTO_INLINE void gather_blocks(const Tile<T, R, C>& out, const Tile<S, SR, SC>& src,
                                const Tile<uint32_t, R, BC, ORS>& offset) {
    const char* bytes = reinterpret_cast<const char*>(src.data);
    constexpr int64_t SIZE = int64_t{SR} * SC * sizeof(S);
    for (int64_t i = 0; i < R; ++i) {
        for (int64_t b = 0; b < BC; ++b) {
            char* block = reinterpret_cast<char*>(out.row(i)) + b * 32;
            const int64_t from = offset.at(i, b);
            const int64_t count = clip(SIZE - from, 0, 32);
            __builtin_memset(block, 0, 32);
            __builtin_memcpy(block, bytes + from, static_cast<uint64_t>(count));
        }
    }
}

// out[r] := ascending offset + c for the columns c of row r that match; count[0, r] := how many match.
template <typename F, int R, int C, typename N, typename T, int SC, int SRS, int SCS>
PYPTO_INLINE void gather_matches(const Tile<int32_t, R, C>& out, const Tile<N, 1, R>& count,
                                 const Tile<T, R, SC, SRS, SCS>& src, int64_t offset, F matches) {
    clear_outside(out, 0, 0);
    for (int64_t i = 0; i < R; ++i) {
        int64_t found = 0;
        if (i < src.valid_rows) {
            for (int64_t j = 0; j < clip(src.valid_cols, 0, SC); ++j) {
                if (!matches(widen(src.at(i, j)))) continue;
                if (found < C) out.at(i, found) = static_cast<int32_t>(offset + j);
                ++found;
            }
        }
        count.at(0, i) = static_cast<N>(found);
    }
}

// dst[to + (r, c)] := src[from + (r, c)] for a box of rows x cols; transposed: dst[to + (c, r)].
template <typename T, int R, int C, int RS, int CS, int N>
PYPTO_INLINE void gather_row(const Kernel& kernel, const Tile<T, R, C, RS, CS>& dst, const Tensor<T, N>& src,
                             Index<2> to, const Index<N>& from, int64_t rows, int64_t cols, bool is_transposed,
                             const char* detail) {
    static_assert(N == 2, "rows are gathered from two dimensions");
    kernel.check(N, src.shape, from.at, box(rows, cols).at, detail);
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < cols; ++c) {
            const int64_t i = to.at[0] + (is_transposed ? c : r);
            const int64_t j = to.at[1] + (is_transposed ? r : c);
            const int64_t row = from.at[0] + r;
            const int64_t col = from.at[1] + c;
            if (i < 0 || i >= R || j < 0 || j >= C) continue;
            if (row < 0 || row >= src.shape[0] || col < 0 || col >= src.shape[1]) continue;
            dst.at(i, j) = src.data[row * src.stride[0] + col * src.stride[1]];
        }
    }
}

// A tile seen as a tensor of its physical extents.
template <typename T, int R, int C, int RS, int CS>
PYPTO_INLINE Tensor<T, 2> as_tensor(const Tile<T, R, C, RS, CS>& tile) {
    return {tile.data, {R, C}, {RS, CS}};
}

enum class OutOfBounds { UNDEFINED, CLAMP, WRAP, ZERO };

// The position that an index, read as unsigned, stands for; -1 for a zero.
PYPTO_INLINE int64_t bounded(int32_t index, int64_t bound, OutOfBounds mode) {
    const int64_t position = static_cast<uint32_t>(index);
    if (position < bound) return position;
    if (mode == OutOfBounds::CLAMP) return bound - 1;
    if (mode == OutOfBounds::WRAP) return position % bound;
    return -1;
}

template <typename T, int N>
PYPTO_INLINE T flat_element(const Tensor<T, N>& tensor, int64_t position) {
    int64_t element = 0;
    for (int i = N - 1; i >= 0; --i) {
        element += position % tensor.shape[i] * tensor.stride[i];
        position /= tensor.shape[i];
    }
    return tensor.data[element];
}

template <typename T, int N>
PYPTO_INLINE int64_t element_count(const Tensor<T, N>& tensor) {
    int64_t count = 1;
    for (int i = 0; i < N; ++i) count *= tensor.shape[i];
    return count;
}

// Indices lie in a tile, or in global memory as a matrix.
template <typename I, int R, int C, int RS, int CS>
PYPTO_INLINE I index_at(const Tile<I, R, C, RS, CS>& index, int64_t i, int64_t j) {
    return index.at(i, j);
}
template <typename I>
PYPTO_INLINE I index_at(const Tensor<I, 2>& index, int64_t i, int64_t j) {
    return index.data[i * index.stride[0] + j * index.stride[1]];
}
template <typename I, int R, int C, int RS, int CS>
PYPTO_INLINE bool is_single_row(const Tile<I, R, C, RS, CS>&) {
    return R == 1;
}
template <typename I>
PYPTO_INLINE bool is_single_row(const Tensor<I, 2>& index) {
    return index.shape[0] == 1;
}

// out[i, j] := mem.flat[index[i, j]]
template <typename T, int R, int C, int N, typename Indices>
PYPTO_INLINE void gather_elements(const Tile<T, R, C>& out, const Tensor<T, N>& mem, const Indices& index,
                                  OutOfBounds mode) {
    clear_outside(out, 0, 0);
    const int64_t bound = element_count(mem);
    for (int64_t i = 0; i < least(out.valid_rows, R); ++i) {
        for (int64_t j = 0; j < least(out.valid_cols, C); ++j) {
            const int64_t at = bounded(index_at(index, i, j), bound, mode);
            if (at >= 0) out.at(i, j) = flat_element(mem, at);
        }
    }
}

// out[r, :] := mem[index[r], :]
template <typename T, int R, int C, int N, typename Indices>
PYPTO_INLINE void gather_rows(const Tile<T, R, C>& out, const Tensor<T, N>& mem, const Indices& index,
                              OutOfBounds mode) {
    clear_outside(out, 0, 0);
    const int64_t bound = element_count(mem) / mem.shape[N - 1];
    for (int64_t r = 0; r < least(out.valid_rows, R); ++r) {
        const int64_t at = bounded(is_single_row(index) ? index_at(index, 0, r) : index_at(index, r, 0), bound, mode);
        if (at < 0) continue;
        for (int64_t c = 0; c < C; ++c) out.at(r, c) = flat_element(mem, at * mem.shape[N - 1] + c);
    }
}

// tensor.flat[index[i, j]] := src[i, j]
template <typename T, int N, int R, int C, int RS, int CS, typename I, int IRS, int ICS>
PYPTO_INLINE void scatter_elements(const Kernel& kernel, const Tensor<T, N>& tensor, const Tile<T, R, C, RS, CS>& src,
                                   const Tile<I, R, C, IRS, ICS>& index, const char* detail) {
    const int64_t bound[1] = {element_count(tensor)};
    for (int64_t i = 0; i < src.valid_rows; ++i) {
        for (int64_t j = 0; j < src.valid_cols; ++j) {
            int64_t position = static_cast<int64_t>(index.at(i, j));
            kernel.check(1, bound, &position, box(1).at, detail);
            if (position < 0 || position >= bound[0]) continue;
            int64_t element = 0;
            for (int d = N - 1; d >= 0; --d) {
                element += position % tensor.shape[d] * tensor.stride[d];
                position /= tensor.shape[d];
            }
            tensor.data[element] = src.at(i, j);
        }
    }
}

}  // namespace pypto

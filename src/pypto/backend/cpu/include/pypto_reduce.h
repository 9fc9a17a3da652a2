// Reductions along rows and columns over the valid rectangle.
//
// Floats are combined in float and rounded once. Along a row 16 partial results run side by side, so that the order of
// additions is the same whatever the compiler makes of the loop.
#pragma once

#include "pypto_kernel.h"

namespace pypto {

struct Sum {
    template <typename A>
    static PYPTO_INLINE A start() { return static_cast<A>(0); }
    template <typename A>
    PYPTO_INLINE A operator()(A a, A b) const { return add(a, b); }
};

struct Product {
    template <typename A>
    static PYPTO_INLINE A start() { return static_cast<A>(1); }
    template <typename A>
    PYPTO_INLINE A operator()(A a, A b) const { return mul(a, b); }
};

struct Maximum {
    template <typename A>
    static PYPTO_INLINE A start() {
        if constexpr (Traits<A>::IS_FLOAT) return -__builtin_inff(); else return Traits<A>::LOWEST;
    }
    template <typename A>
    PYPTO_INLINE A operator()(A a, A b) const { return max(a, b); }
};

struct Minimum {
    template <typename A>
    static PYPTO_INLINE A start() {
        if constexpr (Traits<A>::IS_FLOAT) return __builtin_inff(); else return Traits<A>::HIGHEST;
    }
    template <typename A>
    PYPTO_INLINE A operator()(A a, A b) const { return min(a, b); }
};

constexpr int REDUCE_LANES = 16;

// The lanes of partial results: a vector of the compiler, whose operators are those of the elements. A vector of
// booleans does not exist.
template <typename A>
using LaneElement = typename Choose<Same<A, bool>::VALUE, uint8_t, A>::Type;

template <typename A>
struct Lanes {
    typedef LaneElement<A> Vector __attribute__((vector_size(REDUCE_LANES * sizeof(A))));
};

template <typename V>
PYPTO_INLINE V combine_lanes(Sum, V a, V b) { return a + b; }
template <typename V>
PYPTO_INLINE V combine_lanes(Product, V a, V b) { return a * b; }
template <typename V>
PYPTO_INLINE V combine_lanes(Maximum, V a, V b) { return ((a > b) | (a != a)) ? a : b; }
template <typename V>
PYPTO_INLINE V combine_lanes(Minimum, V a, V b) { return ((a < b) | (a != a)) ? a : b; }

// One block of lanes, widened; lanes past `count` do not change a result.
template <typename Combine, typename T, int CS>
PYPTO_INLINE typename Lanes<Compute<T>>::Vector lanes_of(const T* row, int64_t count) {
    using A = Compute<T>;
    A block[REDUCE_LANES];
    for (int l = 0; l < REDUCE_LANES; ++l) block[l] = Combine::template start<A>();
    if (count >= REDUCE_LANES) {
        for (int l = 0; l < REDUCE_LANES; ++l) block[l] = widen(row[l * CS]);
    } else {
        for (int64_t l = 0; l < count; ++l) {
            PYPTO_SCALAR_LOOP;
            block[l] = widen(row[l * CS]);
        }
    }
    typename Lanes<A>::Vector lanes;
    __builtin_memcpy(&lanes, block, sizeof(lanes));
    return lanes;
}

template <typename Combine, typename T, int CS>
__attribute__((noinline)) Compute<T> reduce_row(const T* row, int64_t count) {
    using A = Compute<T>;
    const Combine combine{};
    auto partial = lanes_of<Combine, T, CS>(row, 0);
    int64_t j = 0;
    for (; j + REDUCE_LANES <= count; j += REDUCE_LANES) {
        partial = combine_lanes(combine, partial, lanes_of<Combine, T, CS>(row + j * CS, REDUCE_LANES));
    }
    if (j < count) partial = combine_lanes(combine, partial, lanes_of<Combine, T, CS>(row + j * CS, count - j));
    A lanes[REDUCE_LANES];
    __builtin_memcpy(lanes, &partial, sizeof(partial));
    for (int step = REDUCE_LANES / 2; step > 0; step /= 2) {
        for (int l = 0; l < step; ++l) {
            PYPTO_SCALAR_LOOP;
            lanes[l] = combine(lanes[l], lanes[l + step]);
        }
    }
    return lanes[0];
}

// out[i, 0] := combination of row i.
template <typename Combine, typename T, int R, int RSO, int CSO, int C, int RS, int CS>
PYPTO_INLINE void reduce_rows(const Tile<T, R, 1, RSO, CSO>& out, const Tile<T, R, C, RS, CS>& tile) {
    const int64_t rows = clip(tile.valid_rows, 0, R);
    const int64_t cols = clip(tile.valid_cols, 0, C);
    for (int64_t i = 0; i < rows; ++i) out.at(i, 0) = convert<T>(reduce_row<Combine, T, CS>(tile.row(i), cols));
    clear_outside(out, rows, 1);
}

// out[0, j] := combination of column j.
template <typename Combine, typename T, int C, int RSO, int CSO, int R, int RS, int CS>
PYPTO_INLINE void reduce_cols(const Tile<T, 1, C, RSO, CSO>& out, const Tile<T, R, C, RS, CS>& tile) {
    using A = Compute<T>;
    constexpr int BLOCK = C < 64 ? C : 64;
    const Combine combine{};
    const int64_t rows = clip(tile.valid_rows, 0, R);
    const int64_t cols = clip(tile.valid_cols, 0, C);
    for (int64_t j = 0; j < cols; j += BLOCK) {
        const int64_t width = least(C - j, BLOCK);
        A block[BLOCK];
        for (int l = 0; l < BLOCK; ++l) block[l] = Combine::template start<A>();
        for (int64_t i = 0; i < rows; ++i) {
            const T* row = tile.row(i) + j * CS;
            for (int64_t l = 0; l < width; ++l) block[l] = combine(block[l], widen(row[l * CS]));
        }
        for (int64_t l = 0; l < width; ++l) out.at(0, j + l) = convert<T>(block[l]);
    }
    clear_outside(out, 1, cols);
}

// Is `a` a better extreme than `b`? NaN is the best of all, as in numpy.
struct Greater {
    template <typename A>
    PYPTO_INLINE bool operator()(A a, A b) const { return a > b || (a != a && b == b); }
};
struct Less {
    template <typename A>
    PYPTO_INLINE bool operator()(A a, A b) const { return a < b || (a != a && b == b); }
};

// out[i, 0] := index of the first extreme of row i.
template <typename Better, typename I, int R, int RSO, int CSO, typename T, int C, int RS, int CS>
PYPTO_INLINE void arg_rows(const Tile<I, R, 1, RSO, CSO>& out, const Tile<T, R, C, RS, CS>& tile) {
    const int64_t rows = clip(tile.valid_rows, 0, R);
    const int64_t cols = clip(tile.valid_cols, 0, C);
    for (int64_t i = 0; i < rows; ++i) {
        int64_t best = 0;
        for (int64_t j = 1; j < cols; ++j) {
            if (Better{}(widen(tile.at(i, j)), widen(tile.at(i, best)))) best = j;
        }
        out.at(i, 0) = static_cast<I>(best);
    }
    clear_outside(out, rows, 1);
}

// out[0, j] := index of the first extreme of column j.
template <typename Better, typename I, int C, int RSO, int CSO, typename T, int R, int RS, int CS>
PYPTO_INLINE void arg_cols(const Tile<I, 1, C, RSO, CSO>& out, const Tile<T, R, C, RS, CS>& tile) {
    arg_rows<Better>(transpose_view(out), transpose_view(tile));
}

}  // namespace pypto

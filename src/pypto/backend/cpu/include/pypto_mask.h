// Packed predicates: bit `column % 8` of byte `column / 8` of a row, least significant bit first; and operators that
// depend on which operand is valid where.
#pragma once

#include "pypto_kernel.h"

namespace pypto {

template <typename T>
struct BitRow {
    const T* row;
    PYPTO_INLINE bool operator[](int64_t j) const {
        return (reinterpret_cast<const uint8_t*>(row)[j >> 3] >> (j & 7)) & 1;
    }
};

template <typename T, int RS>
struct Bits {
    static constexpr bool IS_FLAT = false;
    const T* data;
    PYPTO_INLINE BitRow<T> row(int64_t i) const { return {data + i * RS}; }
};

template <typename T, int R, int C, int RS>
PYPTO_INLINE Bits<T, RS> bits(const Tile<T, R, C, RS, 1>& mask) {
    return {mask.data};
}
template <typename T, int RS>
PYPTO_INLINE Bits<T, RS> operand(const Bits<T, RS>& mask) {
    return mask;
}

template <typename T, int R, int C, int RS, typename F, typename... In>
PYPTO_INLINE void each_bit_operand(const Tile<uint8_t, R, C, RS, 1>& out, int64_t cols, F f, const In&... in) {
    const int64_t rows = clip(out.valid_rows, 0, R);
    const int64_t bytes = least((cols + 7) / 8, C);
    clear_outside(out, rows, bytes);
    for (int64_t i = 0; i < rows; ++i) {
        uint8_t* row = out.row(i);
        for (int64_t j = 0; j < bytes; ++j) {
            const int64_t width = least(cols - j * 8, 8);
            uint32_t byte = 0;
            for (int64_t l = 0; l < width; ++l) {
                byte |= static_cast<uint32_t>(f(convert<Compute<T>>(in.row(i)[j * 8 + l])...)) << l;
            }
            row[j] = static_cast<uint8_t>(byte);
        }
    }
}

// out := packed predicate f(in...) over `cols` columns, operands converted to T. Unused bits are 0.
template <typename T, int R, int C, int RS, typename F, typename... In>
PYPTO_INLINE void each_bit(const Tile<uint8_t, R, C, RS, 1>& out, int64_t cols, F f, const In&... in) {
    each_bit_operand<T>(out, cols, f, operand(in)...);
}

// f where both operands are valid, a copy where exactly one is, zero elsewhere.
template <typename T, int R, int C, int RS, int CS, typename F, typename A, int RSA, int CSA, typename B, int RSB, int CSB>
PYPTO_INLINE void each_partial(const Tile<T, R, C, RS, CS>& out, F f, const Tile<A, R, C, RSA, CSA>& a,
                               const Tile<B, R, C, RSB, CSB>& b) {
    for (int64_t i = 0; i < R; ++i) {
        for (int64_t j = 0; j < C; ++j) {
            const bool in_a = i < a.valid_rows && j < a.valid_cols;
            const bool in_b = i < b.valid_rows && j < b.valid_cols;
            const Compute<T> x = in_a ? convert<Compute<T>>(a.at(i, j)) : Compute<T>(0);
            const Compute<T> y = in_b ? convert<Compute<T>>(b.at(i, j)) : Compute<T>(0);
            out.at(i, j) = convert<T>(in_a && in_b ? f(x, y) : (in_a ? x : y));
        }
    }
}

}  // namespace pypto

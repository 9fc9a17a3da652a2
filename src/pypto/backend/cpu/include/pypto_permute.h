// Operators that rearrange elements, and the values that padding is filled with.
#pragma once

#include "pypto_kernel.h"

namespace pypto {

// ---- padding -----------------------------------------------------------------------------------------------------

template <typename T>
PYPTO_INLINE T pad_zero() {
    return convert<T>(static_cast<Compute<T>>(0));
}

template <typename T>
PYPTO_INLINE T pad_max() {
    if constexpr (Traits<T>::IS_FLOAT) return convert<T>(INF); else return Traits<T>::HIGHEST;
}

template <typename T>
PYPTO_INLINE T pad_min() {
    if constexpr (Traits<T>::IS_FLOAT) return convert<T>(-INF); else return Traits<T>::LOWEST;
}

// ---- transposes --------------------------------------------------------------------------------------------------

// out[j, i] := in[i, j], in blocks that fit into registers and cache lines on both sides.
template <typename T, int C, int R, int RS, int CS, int RS2, int CS2>
PYPTO_INLINE void transpose(const Tile<T, C, R, RS, CS>& out, const Tile<T, R, C, RS2, CS2>& in) {
    constexpr int64_t BLOCK = 16;
    for (int64_t i = 0; i < R; i += BLOCK) {
        for (int64_t j = 0; j < C; j += BLOCK) {
            const int64_t rows = least(i + BLOCK, R);
            const int64_t cols = least(j + BLOCK, C);
            for (int64_t c = j; c < cols; ++c) {
                for (int64_t r = i; r < rows; ++r) out.at(c, r) = in.at(r, c);
            }
        }
    }
}

// Packed [A, M, B, N, Z] to [A, N, B, M, Z].
template <int A, int M, int B, int N, int Z, typename T>
PYPTO_INLINE void swap_axes(T* __restrict out, const T* __restrict in) {
    for (int64_t a = 0; a < A; ++a) {
        for (int64_t n = 0; n < N; ++n) {
            for (int64_t b = 0; b < B; ++b) {
                for (int64_t m = 0; m < M; ++m) {
                    copy_row(out + (((a * N + n) * B + b) * M + m) * Z, 1, in + (((a * M + m) * B + b) * N + n) * Z, 1, Z);
                }
            }
        }
    }
}

}  // namespace pypto

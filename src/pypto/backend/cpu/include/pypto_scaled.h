// Matrix products of operands with a power-of-two scale for every 32 elements along the summed dimension.
#pragma once

#include "pypto_kernel.h"

namespace pypto {

constexpr int SCALE_BLOCK = 32;

// out (+)= sum over k of lhs[i, k] * lhs_scale[i, k / 32] * rhs[k, j] * rhs_scale[k / 32, j], over the valid depth of lhs.
template <int M, int N, int RSO, int CSO, typename L, int K, int RSL, int CSL, typename S, int B, int RLS, int CLS,
          typename R, int RSR, int CSR, int RRS, int CRS>
PYPTO_INLINE void matmul_scaled(const Tile<float, M, N, RSO, CSO>& out, const Tile<L, M, K, RSL, CSL>& lhs,
                                const Tile<S, M, B, RLS, CLS>& lhs_scale, const Tile<R, K, N, RSR, CSR>& rhs,
                                const Tile<S, B, N, RRS, CRS>& rhs_scale, bool accumulate) {
    const int64_t rows = clip(lhs.valid_rows, 0, M);
    const int64_t cols = clip(rhs.valid_cols, 0, N);
    const int64_t depth = clip(lhs.valid_cols, 0, K);
    if (!accumulate) clear_outside(out, 0, 0);
    for (int64_t i = 0; i < rows; ++i) {
        for (int64_t k = 0; k < depth; ++k) {
            const float left = widen(lhs.at(i, k)) * widen(lhs_scale.at(i, k / SCALE_BLOCK));
            for (int64_t j = 0; j < cols; ++j) {
                out.at(i, j) += left * (widen(rhs.at(k, j)) * widen(rhs_scale.at(k / SCALE_BLOCK, j)));
            }
        }
    }
}

}  // namespace pypto

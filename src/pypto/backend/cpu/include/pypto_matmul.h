// Matrix products: a register-blocked kernel over panels that are packed to the accumulator type.
//
// Operands of any element type and any strides are converted while they are packed, so that one inner loop serves all
// of them: float for every float type, int32 for integers. 8-bit integer products go through the float kernel as well:
// a block of 256 of them is below 2^24 and so exact, and the blocks are added as integers.
#pragma once

#include "pypto_kernel.h"

namespace pypto {

#if defined(__AVX512F__)
constexpr int VECTOR_BYTES = 64;
constexpr int MICRO_ROWS = 8;
#elif defined(__AVX__)
constexpr int VECTOR_BYTES = 32;
constexpr int MICRO_ROWS = 6;
#else
constexpr int VECTOR_BYTES = 16;
constexpr int MICRO_ROWS = 6;
#endif

template <typename Acc>
struct Micro {
    typedef Acc Vector __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
    static constexpr int LANES = VECTOR_BYTES / static_cast<int>(sizeof(Acc));
};

// Vectors per row of a register block: few rows need wide panels to keep the arithmetic units busy and the accesses to
// the right operand long.
constexpr int vectors_for(int rows) { return rows == 1 ? 8 : (rows <= 3 ? 4 : 2); }

constexpr int DEPTH_BLOCK = 256;
constexpr int ROW_BLOCK = 64;

// Bytes of scratch that a product needs: a packed panel of each operand and a block of partial results.
constexpr int MAX_PANEL = 8 * VECTOR_BYTES / 4;
constexpr uint64_t MATMUL_SCRATCH = 4ull * (DEPTH_BLOCK * MAX_PANEL + ROW_BLOCK * DEPTH_BLOCK + ROW_BLOCK * MAX_PANEL);

template <typename Acc>
struct MatmulScratch {
    Acc b[DEPTH_BLOCK * MAX_PANEL];
    Acc a[ROW_BLOCK * DEPTH_BLOCK];
    Acc c[ROW_BLOCK * MAX_PANEL];
};
static_assert(sizeof(MatmulScratch<float>) == MATMUL_SCRATCH, "the scratch holds the three blocks");

// c[0:M, 0:COLS] (+)= a[0:M, 0:depth] * b[0:depth, 0:COLS] with COLS = VECTORS vectors
template <typename Acc, int M, int VECTORS>
PYPTO_INLINE void micro_kernel(Acc* __restrict c, int64_t c_stride, const Acc* __restrict a, int64_t a_stride,
                               const Acc* __restrict b, int64_t b_stride, int64_t depth, bool accumulate) {
    using V = typename Micro<Acc>::Vector;
    constexpr int LANES = Micro<Acc>::LANES;
    V sum[M][VECTORS];
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
        for (int v = 0; v < VECTORS; ++v) {
            sum[i][v] = accumulate ? *reinterpret_cast<const V*>(c + i * c_stride + v * LANES) : V{};
        }
    }
    for (int64_t k = 0; k < depth; ++k) {
        V right[VECTORS];
#pragma GCC unroll 8
        for (int v = 0; v < VECTORS; ++v) right[v] = *reinterpret_cast<const V*>(b + k * b_stride + v * LANES);
#pragma GCC unroll 8
        for (int i = 0; i < M; ++i) {
            const Acc x = a[i * a_stride + k];
#pragma GCC unroll 8
            for (int v = 0; v < VECTORS; ++v) sum[i][v] += x * right[v];
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
        for (int v = 0; v < VECTORS; ++v) *reinterpret_cast<V*>(c + i * c_stride + v * LANES) = sum[i][v];
    }
}

// `rows` rows against one panel of columns; the remainder of M modulo the block is compiled for, so `rows` is either a
// multiple of the block or ends with that remainder.
template <typename Acc, int M>
__attribute__((noinline)) void row_block(Acc* c, int64_t c_stride, const Acc* a, int64_t a_stride, const Acc* b,
                                         int64_t b_stride, int64_t rows, int64_t depth, bool accumulate) {
    int64_t i = 0;
    if constexpr (M >= MICRO_ROWS) {
        for (; i + MICRO_ROWS <= rows; i += MICRO_ROWS) {
            micro_kernel<Acc, MICRO_ROWS, vectors_for(M)>(c + i * c_stride, c_stride, a + i * a_stride, a_stride, b, b_stride, depth,
                                          accumulate);
        }
    }
    if constexpr (M % MICRO_ROWS != 0) {
        if (i < rows) {
            micro_kernel<Acc, M % MICRO_ROWS, vectors_for(M)>(c + i * c_stride, c_stride, a + i * a_stride, a_stride, b, b_stride,
                                              depth, accumulate);
        }
    }
}

// depth x COLS elements from `b`, converted; columns past `cols` are zero.
template <typename Acc, int COLS, int RS, int CS, typename S>
PYPTO_INLINE void pack_panel(Acc* __restrict to, const S* __restrict b, int64_t depth, int64_t cols) {
    if (cols < COLS) {
        for (int64_t i = 0; i < depth * COLS; ++i) to[i] = 0;
    }
    if constexpr (RS == 1 && CS != 1) {
        for (int64_t j = 0; j < cols; ++j) {
            for (int64_t k = 0; k < depth; ++k) to[k * COLS + j] = convert<Acc>(b[k + j * CS]);
        }
    } else if (cols == COLS) {
        for (int64_t k = 0; k < depth; ++k) {
            for (int j = 0; j < COLS; ++j) to[k * COLS + j] = convert<Acc>(b[k * RS + j * CS]);
        }
    } else {
        for (int64_t k = 0; k < depth; ++k) {
            for (int64_t j = 0; j < cols; ++j) to[k * COLS + j] = convert<Acc>(b[k * RS + j * CS]);
        }
    }
}

template <typename Acc, int RS, int CS, typename S>
PYPTO_INLINE void pack_rows(Acc* __restrict to, const S* __restrict a, int64_t rows, int64_t depth) {
    for (int64_t i = 0; i < rows; ++i) {
        for (int64_t k = 0; k < depth; ++k) to[i * DEPTH_BLOCK + k] = convert<Acc>(a[i * RS + k * CS]);
    }
}

// out (+)= lhs * rhs over the valid depth of lhs. `scratch` holds MATMUL_SCRATCH bytes.
template <typename Out, int M, int N, int RSO, int CSO, typename L, int K, int RSL, int CSL, typename R, int KR, int RSR,
          int CSR>
PYPTO_INLINE void matmul(const Tile<Out, M, N, RSO, CSO>& out, const Tile<L, M, K, RSL, CSL>& lhs,
                         const Tile<R, KR, N, RSR, CSR>& rhs, bool accumulate, void* scratch) {
    // Products of 8-bit integers are exact in float within one depth block.
    constexpr bool IS_SMALL = !Traits<L>::IS_FLOAT && sizeof(L) == 1 && sizeof(R) == 1;
    constexpr bool IS_REAL = Traits<L>::IS_FLOAT || IS_SMALL;
    using Acc = typename Choose<IS_REAL, float, int32_t>::Type;
    constexpr int COLS = vectors_for(M) * Micro<Acc>::LANES;
    constexpr bool LHS_AS_IS = Same<L, Acc>::VALUE && CSL == 1;
    constexpr bool RHS_AS_IS = Same<R, Acc>::VALUE && CSR == 1 && M <= 2 * MICRO_ROWS;
    constexpr bool OUT_AS_IS = Same<Out, Acc>::VALUE && CSO == 1;
    auto* blocks = static_cast<MatmulScratch<Acc>*>(scratch);

    const int64_t valid_rows = clip(lhs.valid_rows, 0, M);
    const int64_t rows = least((valid_rows + MICRO_ROWS - 1) / MICRO_ROWS * MICRO_ROWS, M);
    const int64_t cols = clip(rhs.valid_cols, 0, N);
    const int64_t depth = least(clip(lhs.valid_cols, 0, K), KR);
    if (!accumulate && (rows < M || cols < N || depth == 0)) clear_outside(out, depth == 0 ? 0 : rows, cols);

    for (int64_t k = 0; k < depth; k += DEPTH_BLOCK) {
        const int64_t block_depth = least(depth - k, DEPTH_BLOCK);
        const bool add = accumulate || k > 0;
        for (int64_t i = 0; i < rows; i += ROW_BLOCK) {
            const int64_t block_rows = least(rows - i, ROW_BLOCK);
            const Acc* a = blocks->a;
            if constexpr (LHS_AS_IS) {
                a = lhs.row(i) + k;
            } else {
                pack_rows<Acc, RSL, CSL>(blocks->a, lhs.row(i) + k * CSL, block_rows, block_depth);
            }
            constexpr int64_t A_STRIDE = LHS_AS_IS ? RSL : DEPTH_BLOCK;
            for (int64_t j = 0; j < cols; j += COLS) {
                const int64_t block_cols = least(cols - j, COLS);
                const bool whole = j + COLS <= N;
                const Acc* b = blocks->b;
                int64_t b_stride = COLS;
                bool packed = false;
                if constexpr (RHS_AS_IS) {
                    if (whole) {
                        b = rhs.row(k) + j;
                        b_stride = RSR;
                        packed = true;
                    }
                }
                if (!packed) {
                    pack_panel<Acc, COLS, RSR, CSR>(blocks->b, rhs.row(k) + j * CSR, block_depth, least(N - j, COLS));
                }
                if constexpr (OUT_AS_IS) {
                    if (whole) {
                        row_block<Acc, M>(out.row(i) + j, RSO, a, A_STRIDE, b, b_stride, block_rows, block_depth, add);
                        continue;
                    }
                }
                row_block<Acc, M>(blocks->c, COLS, a, A_STRIDE, b, b_stride, block_rows, block_depth, false);
                for (int64_t r = 0; r < block_rows; ++r) {
                    for (int64_t c = 0; c < block_cols; ++c) {
                        Out& target = out.at(i + r, j + c);
                        const Out part = convert<Out>(blocks->c[r * COLS + c]);
                        target = add ? ::pypto::add(target, part) : part;
                    }
                }
            }
        }
    }
}

}  // namespace pypto

// Stores that add to a tensor while other tasks add to it too. The order of additions is not defined.
#pragma once

#include "pypto_kernel.h"

namespace pypto {

template <int SIZE>
struct Word;
template <>
struct Word<1> {
    using Type = uint8_t;
};
template <>
struct Word<2> {
    using Type = uint16_t;
};
template <>
struct Word<4> {
    using Type = uint32_t;
};
template <>
struct Word<8> {
    using Type = uint64_t;
};

template <typename T>
PYPTO_INLINE void atomic_add(T* target, Compute<T> value) {
    using Bits = typename Word<sizeof(T)>::Type;
    auto* word = reinterpret_cast<Bits*>(target);
    Bits before = __atomic_load_n(word, __ATOMIC_RELAXED);
    Bits after;
    do {
        after = bit_cast<Bits>(convert<T>(add(widen(bit_cast<T>(before)), value)));
    } while (!__atomic_compare_exchange_n(word, &before, after, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

// tensor[offset : offset + valid] += tile[:valid]
template <typename T, int R, int C, int RS, int CS, typename S, int N>
PYPTO_INLINE void store_add(const Kernel& kernel, const Tile<T, R, C, RS, CS>& tile, const Tensor<S, N>& tensor,
                            const Index<N>& offset, const Index<N>& physical, const Index<N>& valid,
                            const char* detail) {
    kernel.check(N, tensor.shape, offset.at, valid.at, detail);
    const Overlap overlap(N, tensor.shape, offset.at, valid.at);
    const auto to = tensor_side(tensor.data, N, tensor.stride, offset.at, overlap);
    const auto from = tile_side(tile.data, RS, CS, N, physical.at, overlap);
    for (int64_t flat = 0; flat < overlap.elements; ++flat) {
        int64_t rest = flat;
        S* target = to.data;
        const T* source = from.data;
        for (int i = N - 1; i >= 0; --i) {
            target += rest % overlap.count[i] * to.stride[i];
            source += rest % overlap.count[i] * from.stride[i];
            rest /= overlap.count[i];
        }
        atomic_add(target, convert<Compute<S>>(*source));
    }
}

template <typename T, int R, int C, int RS, int CS, typename S>
PYPTO_INLINE void store_add(const Kernel& kernel, const Tile<T, R, C, RS, CS>& tile, const Tensor<S, 2>& tensor,
                            const Index<2>& offset, const char* detail) {
    store_add(kernel, tile, tensor, offset, box(R, C), box(tile.valid_rows, tile.valid_cols), detail);
}

}  // namespace pypto

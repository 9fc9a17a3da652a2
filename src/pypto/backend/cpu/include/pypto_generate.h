// Tiles that are computed from nothing: sequences, triangles, random numbers.
#pragma once

#include "pypto_kernel.h"

namespace pypto {

// out[0, k] := start + k, or start - k; wraps.
template <typename T, int R, int C>
PYPTO_INLINE void sequence(const Tile<T, R, C>& out, T start, bool is_descending) {
    for (int64_t j = 0; j < int64_t{R} * C; ++j) {
        out.data[j] = is_descending ? sub(start, static_cast<T>(j)) : add(start, static_cast<T>(j));
    }
}

// Lower triangle: 1 where j <= i + diagonal; upper: 1 where j >= i + diagonal; 0 elsewhere.
template <typename T, int R, int C>
PYPTO_INLINE void triangle(const Tile<T, R, C>& out, int64_t diagonal, bool is_upper) {
    const T one = convert<T>(1);
    const T zero = convert<T>(0);
    for (int64_t i = 0; i < R; ++i) {
        for (int64_t j = 0; j < C; ++j) {
            const bool inside = is_upper ? j >= i + diagonal : j <= i + diagonal;
            out.at(i, j) = inside ? one : zero;
        }
    }
}

struct Counter {
    uint32_t word[4];

    PYPTO_INLINE Counter plus(uint64_t count) const {
        Counter next = *this;
        uint64_t carry = count;
        for (int i = 0; i < 4; ++i) {
            const uint64_t sum = static_cast<uint64_t>(next.word[i]) + (carry & 0xffffffffu);
            next.word[i] = static_cast<uint32_t>(sum);
            carry = (carry >> 32) + (sum >> 32);
        }
        return next;
    }
};

// Philox-4x32 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3").
PYPTO_INLINE Counter philox(Counter c, uint32_t key0, uint32_t key1, int rounds) {
    for (int round = 0; round < rounds; ++round) {
        const uint64_t a = 0xD2511F53ull * c.word[0];
        const uint64_t b = 0xCD9E8D57ull * c.word[2];
        c = Counter{{static_cast<uint32_t>(b >> 32) ^ c.word[1] ^ key0, static_cast<uint32_t>(b),
                     static_cast<uint32_t>(a >> 32) ^ c.word[3] ^ key1, static_cast<uint32_t>(a)}};
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return c;
}

// Per row, for each group of 256 columns: lane L of 64 uses counter + L and its four words go to columns
// 64 * w + L; then the counter advances by a quarter of the physical columns.
template <typename T, int R, int C>
PYPTO_INLINE void random(const Tile<T, R, C>& out, uint32_t key0, uint32_t key1, Counter counter, int rounds) {
    clear_outside(out, 0, 0);
    for (int64_t i = 0; i < out.valid_rows; ++i) {
        for (int64_t group = 0; group < C; group += 256) {
            for (int64_t lane = 0; lane < 64; ++lane) {
                const Counter words = philox(counter.plus(static_cast<uint64_t>(lane)), key0, key1, rounds);
                for (int64_t w = 0; w < 4; ++w) {
                    const int64_t j = group + 64 * w + lane;
                    if (j < out.valid_cols) out.at(i, j) = static_cast<T>(words.word[w]);
                }
            }
            counter = counter.plus(C / 4);
        }
    }
}

}  // namespace pypto

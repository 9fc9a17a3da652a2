// Explicit conversions with a rounding mode.
//
// Float to integer rounds as the mode says and then saturates, NaN giving 0; a few pairs keep the low bits instead.
// Float to narrower float rounds to nearest even for the nearest modes and along the target's grid for the directed ones.
#pragma once

#include "pypto_kernel.h"

namespace pypto {

enum class Round { NONE, RINT, AWAY, FLOOR, CEIL, TRUNC, ODD };

template <Round MODE>
PYPTO_INLINE float to_integral(float x) {
    if constexpr (MODE == Round::RINT) {
        return __builtin_rintf(x);
    } else if constexpr (MODE == Round::FLOOR) {
        return __builtin_floorf(x);
    } else if constexpr (MODE == Round::CEIL) {
        return __builtin_ceilf(x);
    } else if constexpr (MODE == Round::AWAY) {
        const float whole = __builtin_truncf(x);
        return __builtin_fabsf(x - whole) >= 0.5f ? whole + __builtin_copysignf(1.0f, x) : whole;
    } else if constexpr (MODE == Round::ODD) {
        const float below = __builtin_floorf(x);
        const float half_of = below * 0.5f;
        const bool is_even = half_of == __builtin_floorf(half_of);
        const float rest = x - below;
        return ((rest > 0.5f) | ((rest == 0.5f) & is_even)) ? below + 1.0f : below;
    } else {
        return __builtin_truncf(x);
    }
}

// Conversions from float that keep the low bits of the integer instead of saturating.
template <typename To, typename From>
constexpr bool WRAPS = (Same<From, half>::VALUE && (sizeof(To) == 1 || Same<To, int16_t>::VALUE)) ||
                       (Same<From, float>::VALUE && Same<To, int16_t>::VALUE);

template <typename To, Round MODE>
PYPTO_INLINE To to_narrow(float x) {
    const To nearest = To::from(x);
    if constexpr (MODE == Round::FLOOR || MODE == Round::CEIL || MODE == Round::TRUNC || MODE == Round::ODD) {
        const float back = nearest.value();
        const uint32_t code = static_cast<uint32_t>(nearest.bits);
        const uint32_t toward_zero = code - (__builtin_fabsf(back) > __builtin_fabsf(x));
        const bool is_exact = (back == x) | (x != x);
        const bool is_negative = (bit_cast<uint32_t>(x) >> 31) != 0;
        uint32_t directed = toward_zero;
        if constexpr (MODE == Round::FLOOR) directed = toward_zero + is_negative;
        if constexpr (MODE == Round::CEIL) directed = toward_zero + !is_negative;
        if constexpr (MODE == Round::ODD) directed = toward_zero | 1;
        return To::of_code(is_exact ? code : directed);
    } else {
        return nearest;
    }
}

template <typename To, Round MODE, typename From>
PYPTO_INLINE To cast_element(From from) {
    if constexpr (Traits<From>::IS_FLOAT && !Traits<To>::IS_FLOAT) {
        if constexpr (Same<To, bool>::VALUE) {
            return widen(from) != 0.0f;
        } else if constexpr (WRAPS<To, From>) {
            return static_cast<To>(to_integer<int64_t>(to_integral<MODE>(widen(from))));
        } else {
            return to_integer<To>(to_integral<MODE>(widen(from)));
        }
    } else if constexpr (Traits<From>::IS_FLOAT && Traits<To>::IS_STORED && !Same<To, float8_e8m0>::VALUE) {
        return to_narrow<To, MODE>(widen(from));
    } else {
        return convert<To>(from);
    }
}

template <Round MODE, typename T, int R, int C, int RS, int CS, typename S, int RS2, int CS2>
PYPTO_INLINE void cast(const Tile<T, R, C, RS, CS>& out, const Tile<S, R, C, RS2, CS2>& in) {
    constexpr bool IS_FLAT = Tile<T, R, C, RS, CS>::IS_PACKED && Tile<S, R, C, RS2, CS2>::IS_PACKED;
    const int64_t rows = clip(out.valid_rows, 0, R);
    if constexpr (IS_FLAT) {
        PYPTO_SIMD
        for (int64_t j = 0; j < rows * C; ++j) out.data[j] = cast_element<T, MODE>(in.data[j]);
    } else {
        for (int64_t i = 0; i < rows; ++i) {
            PYPTO_SIMD
            for (int64_t j = 0; j < C; ++j) out.at(i, j) = cast_element<T, MODE>(in.at(i, j));
        }
    }
    for (int64_t i = rows; i < R; ++i) zero_row(out.row(i), CS, C);
}

}  // namespace pypto

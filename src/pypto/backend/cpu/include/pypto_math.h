// Elementary functions of float: branch-free, so that loops over them vectorise, within about one unit in the last place.
#pragma once

#include "pypto_number.h"

namespace pypto {

// exp(x) = 2^n * exp(r), |r| <= ln(2) / 2, minimax polynomial of degree 6 for exp(r) (Cephes expf).
PYPTO_INLINE float exp(float x) {
    constexpr float ROUND_TO_INTEGER = 12582912.0f;  // 1.5 * 2^23: adding it leaves the integer in the low bits
    float clamped = x < -104.0f ? -104.0f : x;
    clamped = clamped > 89.0f ? 89.0f : clamped;  // both comparisons keep NaN
    const float shifted = clamped * 1.44269504088896341f + ROUND_TO_INTEGER;
    const float n = shifted - ROUND_TO_INTEGER;
    const float r = (clamped - n * 0.693359375f) - n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    // Scale in two steps: one factor could not represent results near both ends of the range.
    const int32_t exponent = bit_cast<int32_t>(shifted) - bit_cast<int32_t>(ROUND_TO_INTEGER);
    const int32_t low = exponent >> 1;
    const int32_t high = exponent - low;
    return p * bit_cast<float>((low + 127) << 23) * bit_cast<float>((high + 127) << 23);
}

// log(x) = e * ln(2) + log(m), m in [sqrt(1/2), sqrt(2)), polynomial of degree 9 (Cephes logf).
PYPTO_INLINE float log(float x) {
    constexpr float SMALLEST_NORMAL = 1.17549435e-38f;
    const bool tiny = x < SMALLEST_NORMAL;
    const float scaled = tiny ? x * 8388608.0f : x;  // 2^23
    const int32_t bits = bit_cast<int32_t>(scaled);
    // Exponent so that the mantissa falls into [sqrt(1/2), sqrt(2)).
    const int32_t e = (bits - 0x3f3504f3) >> 23;
    const float m = bit_cast<float>(bits - (e << 23)) - 1.0f;
    const float exponent = static_cast<float>(e) - (tiny ? 23.0f : 0.0f);
    const float z = m * m;
    float p = 7.0376836292e-2f;
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    float y = p * m * z;
    y = y + exponent * -2.12194440e-4f;
    y = y - 0.5f * z;
    float result = m + y + exponent * 0.693359375f;
    result = x == 0.0f ? -INF : result;
    result = x < 0.0f ? NOT_A_NUMBER : result;
    result = x == INF ? INF : result;
    return x != x ? x : result;
}

PYPTO_INLINE float sqrt(float x) {
#if defined(__clang__) && __has_builtin(__builtin_elementwise_sqrt)
    return __builtin_elementwise_sqrt(x);
#else
    return __builtin_sqrtf(x);
#endif
}

PYPTO_INLINE float rsqrt(float x) { return 1.0f / sqrt(x); }
PYPTO_INLINE float recip(float x) { return 1.0f / x; }
PYPTO_INLINE float floor(float x) { return __builtin_floorf(x); }
PYPTO_INLINE float ceil(float x) { return __builtin_ceilf(x); }
PYPTO_INLINE float trunc(float x) { return __builtin_truncf(x); }
PYPTO_INLINE float rint(float x) { return __builtin_rintf(x); }

// Quadrant and remainder of x modulo pi/2, in double: exact enough up to about 2^30.
struct Reduced {
    float r;
    int32_t quadrant;
};

PYPTO_INLINE Reduced reduce_to_quadrant(float x) {
    constexpr double ROUND_TO_INTEGER = 6755399441055744.0;  // 1.5 * 2^52
    const double n = (static_cast<double>(x) * 0.63661977236758134308 + ROUND_TO_INTEGER) - ROUND_TO_INTEGER;
    const double r = (static_cast<double>(x) - n * 1.57079632679489655800e+00) - n * 6.12323399573676603587e-17;
    const double wrapped = n - 4.0 * __builtin_floor(n * 0.25);
    return {static_cast<float>(r), static_cast<int32_t>(wrapped)};
}

// Sine for quadrant 0, cosine for quadrant 1, and their negatives (Cephes sinf, cosf on [-pi/4, pi/4]).
PYPTO_INLINE float sine_of(Reduced reduced) {
    const float r = reduced.r;
    const float z = r * r;
    const float s = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * r + r;
    const float c =
        ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z - 0.5f * z + 1.0f;
    const float magnitude = (reduced.quadrant & 1) != 0 ? c : s;
    return (reduced.quadrant & 2) != 0 ? -magnitude : magnitude;
}

PYPTO_INLINE float sin(float x) { return sine_of(reduce_to_quadrant(x)); }

PYPTO_INLINE float cos(float x) {
    Reduced reduced = reduce_to_quadrant(x);
    reduced.quadrant += 1;
    return sine_of(reduced);
}

PYPTO_INLINE float pow(float base, float exponent) { return __builtin_powf(base, exponent); }

}  // namespace pypto

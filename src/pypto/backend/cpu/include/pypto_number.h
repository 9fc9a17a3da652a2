// Element types and the conversions between them.
//
// 16-bit and 8-bit floats are storage: arithmetic happens in float and every result is rounded to nearest even once.
// All conversions are branch-free, so that loops over them vectorise. Integer arithmetic wraps modulo 2^n.
#pragma once

#include <stdint.h>

#define PYPTO_INLINE inline __attribute__((always_inline))
#define PYPTO_EXPORT __attribute__((visibility("default")))

// Iterations of the next loop are independent: an output may be the very tile that is read, element for element.
#if defined(__clang__)
#define PYPTO_SIMD _Pragma("clang loop vectorize(assume_safety)")
#else
#define PYPTO_SIMD _Pragma("GCC ivdep")
// Comparisons never trap, so that selects between computed values need no branch. (To vectorise square roots the
// compiler must also be told that they do not set errno; only the command line can do that.)
#pragma GCC optimize("no-trapping-math")
#endif

// Keeps the loop it stands in from being vectorised: where that gains nothing and costs compile time.
#define PYPTO_SCALAR_LOOP asm volatile("")

namespace pypto {

constexpr float INF = __builtin_inff();
constexpr float NOT_A_NUMBER = __builtin_nanf("");

template <typename To, typename From>
PYPTO_INLINE To bit_cast(From from) {
    static_assert(sizeof(To) == sizeof(From), "bit_cast keeps the size");
    To to;
    __builtin_memcpy(&to, &from, sizeof(To));
    return to;
}

// How a small float spends the codes above the largest finite number.
enum class Top { INFINITE, NAN_ONLY };

// A float of EXP exponent and MAN mantissa bits with an IEEE-like bias, kept as its code.
template <typename Bits, int EXP, int MAN, Top TOP>
struct SmallFloat {
    Bits bits;

    static constexpr int BIAS = (1 << (EXP - 1)) - 1;
    static constexpr int DROP = 23 - MAN;
    static constexpr uint32_t SIGN_SHIFT = EXP + MAN;
    static constexpr uint32_t ALL = (1u << SIGN_SHIFT) - 1;               // every bit but the sign
    static constexpr uint32_t INF = ((1u << EXP) - 1) << MAN;              // first code with all exponent bits
    static constexpr uint32_t OVERFLOW_CODE = TOP == Top::INFINITE ? INF : ALL;
    static constexpr uint32_t MAX_FINITE = OVERFLOW_CODE - 1;
    static constexpr uint32_t NAN_CODE = TOP == Top::INFINITE ? (INF | (1u << (MAN - 1))) : ALL;

    static PYPTO_INLINE SmallFloat of_code(uint32_t code) { return SmallFloat{static_cast<Bits>(code)}; }

    // Nearest even, overflow to infinity (or to NaN where the format has no infinity).
    static PYPTO_INLINE SmallFloat from(float value) {
        const uint32_t all = bit_cast<uint32_t>(value);
        const uint32_t magnitude = all & 0x7fffffffu;
        const uint32_t sign = (all >> 31) << SIGN_SHIFT;
        constexpr uint32_t REBIAS = static_cast<uint32_t>(127 - BIAS) << 23;
        // Below the smallest normal number adding `MAGIC` leaves the rounded multiple of the smallest step in the low bits.
        constexpr uint32_t MAGIC = static_cast<uint32_t>(127 + 24 - BIAS - MAN) << 23;
        const uint32_t tiny = bit_cast<uint32_t>(bit_cast<float>(magnitude) + bit_cast<float>(MAGIC)) - MAGIC;
        const uint32_t odd = (magnitude >> DROP) & 1;
        const uint32_t rounded = (magnitude - REBIAS + ((1u << (DROP - 1)) - 1) + odd) >> DROP;
        const uint32_t normal = rounded > MAX_FINITE ? OVERFLOW_CODE : rounded;
        const uint32_t finite = magnitude < REBIAS + (1u << 23) ? tiny : normal;
        const uint32_t code = magnitude > 0x7f800000u ? NAN_CODE : finite;
        return of_code(code | sign);
    }

    PYPTO_INLINE float value() const {
        const uint32_t code = bits & ALL;
        const uint32_t sign = (static_cast<uint32_t>(bits) >> SIGN_SHIFT) << 31;
        const uint32_t shifted = code << DROP;
        constexpr uint32_t REBIAS = static_cast<uint32_t>(127 - BIAS) << 23;
        constexpr uint32_t SMALLEST_NORMAL = static_cast<uint32_t>(127 + 1 - BIAS) << 23;
        const uint32_t tiny = bit_cast<uint32_t>(bit_cast<float>(shifted + SMALLEST_NORMAL) - bit_cast<float>(SMALLEST_NORMAL));
        const uint32_t finite = code < (1u << MAN) ? tiny : shifted + REBIAS;
        const uint32_t top = TOP == Top::INFINITE ? (shifted | 0x7f800000u) : 0x7fc00000u;
        const uint32_t magnitude = code >= OVERFLOW_CODE ? top : finite;
        return bit_cast<float>(magnitude | sign);
    }
};

using half = SmallFloat<uint16_t, 5, 10, Top::INFINITE>;
using float8_e4m3 = SmallFloat<uint8_t, 4, 3, Top::NAN_ONLY>;
using float8_e5m2 = SmallFloat<uint8_t, 5, 2, Top::INFINITE>;

struct bfloat16 {
    uint16_t bits;

    static constexpr uint32_t ALL = 0x7fff;
    static constexpr uint32_t SIGN_SHIFT = 15;

    static PYPTO_INLINE bfloat16 of_code(uint32_t code) { return bfloat16{static_cast<uint16_t>(code)}; }

    static PYPTO_INLINE bfloat16 from(float value) {
        const uint32_t all = bit_cast<uint32_t>(value);
        const uint32_t rounded = (all + 0x7fffu + ((all >> 16) & 1)) >> 16;
        const uint32_t quiet = (all >> 16) | 0x40u;
        return of_code((all & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
    }

    PYPTO_INLINE float value() const { return bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

// A power of two, 2^(bits - 127); 255 is NaN. There is no zero and no sign.
struct float8_e8m0 {
    uint8_t bits;

    static PYPTO_INLINE float8_e8m0 from(float value) {
        const uint32_t all = bit_cast<uint32_t>(value);
        const uint32_t up = (all >> 23) + ((all & 0x7fffffu) > 0x400000u || ((all & 0x7fffffu) == 0x400000u && ((all >> 23) & 1)));
        return float8_e8m0{static_cast<uint8_t>(all > 0x7f800000u ? 255u : up)};
    }

    PYPTO_INLINE float value() const {
        const uint32_t normal = static_cast<uint32_t>(bits) << 23;
        return bit_cast<float>(bits == 255 ? 0x7fc00000u : (bits == 0 ? 0x00400000u : normal));
    }
};

// ---- what an element type is ----------------------------------------------------------------------------------

template <typename T>
struct Traits;

#define PYPTO_STORED_FLOAT(T)                       \
    template <>                                     \
    struct Traits<T> {                              \
        using Compute = float;                      \
        static constexpr bool IS_FLOAT = true;      \
        static constexpr bool IS_STORED = true;     \
    };
PYPTO_STORED_FLOAT(half)
PYPTO_STORED_FLOAT(bfloat16)
PYPTO_STORED_FLOAT(float8_e4m3)
PYPTO_STORED_FLOAT(float8_e5m2)
PYPTO_STORED_FLOAT(float8_e8m0)
#undef PYPTO_STORED_FLOAT

template <>
struct Traits<float> {
    using Compute = float;
    static constexpr bool IS_FLOAT = true;
    static constexpr bool IS_STORED = false;
};

#define PYPTO_INTEGER(T, U, LOW, HIGH)              \
    template <>                                     \
    struct Traits<T> {                              \
        using Compute = T;                          \
        using Unsigned = U;                         \
        static constexpr bool IS_FLOAT = false;     \
        static constexpr bool IS_STORED = false;    \
        static constexpr T LOWEST = LOW;            \
        static constexpr T HIGHEST = HIGH;          \
    };
PYPTO_INTEGER(bool, uint8_t, false, true)
PYPTO_INTEGER(int8_t, uint8_t, INT8_MIN, INT8_MAX)
PYPTO_INTEGER(int16_t, uint16_t, INT16_MIN, INT16_MAX)
PYPTO_INTEGER(int32_t, uint32_t, INT32_MIN, INT32_MAX)
PYPTO_INTEGER(int64_t, uint64_t, INT64_MIN, INT64_MAX)
PYPTO_INTEGER(uint8_t, uint8_t, 0, UINT8_MAX)
PYPTO_INTEGER(uint16_t, uint16_t, 0, UINT16_MAX)
PYPTO_INTEGER(uint32_t, uint32_t, 0, UINT32_MAX)
PYPTO_INTEGER(uint64_t, uint64_t, 0, UINT64_MAX)
#undef PYPTO_INTEGER

template <typename T>
using Compute = typename Traits<T>::Compute;

template <typename A, typename B>
struct Same {
    static constexpr bool VALUE = false;
};
template <typename A>
struct Same<A, A> {
    static constexpr bool VALUE = true;
};

template <typename T>
struct WithoutConst {
    using Type = T;
};
template <typename T>
struct WithoutConst<const T> {
    using Type = T;
};
template <typename T>
using Plain = typename WithoutConst<T>::Type;

template <bool CONDITION, typename Yes, typename No>
struct Choose {
    using Type = Yes;
};
template <typename Yes, typename No>
struct Choose<false, Yes, No> {
    using Type = No;
};

// 2^bits as a float, for the bounds of integer types.
template <typename T>
constexpr float upper_bound() {
    return 2.0f * static_cast<float>(Traits<T>::HIGHEST / 2 + 1);
}

// Toward zero; out of range saturates, NaN gives 0.
template <typename T>
PYPTO_INLINE T to_integer(float value) {
    constexpr float LOW = static_cast<float>(Traits<T>::LOWEST);
    constexpr float HIGH = upper_bound<T>();
    const float safe = value > LOW ? (value < HIGH ? value : 0.0f) : 0.0f;  // also drops NaN
    const T inside = static_cast<T>(safe);
    const T above = value >= HIGH ? Traits<T>::HIGHEST : inside;
    return value <= LOW ? Traits<T>::LOWEST : above;
}

// The number an element stands for, in the type that arithmetic uses.
template <typename T>
PYPTO_INLINE Compute<T> widen(T element) {
    if constexpr (Traits<T>::IS_STORED) {
        return element.value();
    } else {
        return element;
    }
}

// The default conversion: nearest even among floats, toward zero with saturation from float to integer, low bits
// among integers.
template <typename To, typename From>
PYPTO_INLINE To convert(From from) {
    if constexpr (Same<To, From>::VALUE) {
        return from;
    } else if constexpr (Traits<To>::IS_STORED) {
        return To::from(convert<float>(from));
    } else if constexpr (Traits<From>::IS_STORED) {
        return convert<To>(from.value());
    } else if constexpr (Same<To, bool>::VALUE) {
        return from != 0;
    } else if constexpr (Traits<From>::IS_FLOAT && !Traits<To>::IS_FLOAT) {
        return to_integer<To>(from);
    } else {
        return static_cast<To>(from);
    }
}

// The nearest number that T can hold, in the type that arithmetic uses.
template <typename T, typename From>
PYPTO_INLINE Compute<T> round_to(From from) {
    return widen(convert<T>(from));
}

// ---- arithmetic ------------------------------------------------------------------------------------------------
// Named functions rather than operators: for integers they wrap, where the operators of C++ would be undefined.

template <typename T>
PYPTO_INLINE T add(T a, T b) {
    if constexpr (Traits<T>::IS_FLOAT) {
        return a + b;
    } else {
        using U = typename Traits<T>::Unsigned;
        return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
    }
}

template <typename T>
PYPTO_INLINE T sub(T a, T b) {
    if constexpr (Traits<T>::IS_FLOAT) {
        return a - b;
    } else {
        using U = typename Traits<T>::Unsigned;
        return static_cast<T>(static_cast<U>(static_cast<U>(a) - static_cast<U>(b)));
    }
}

template <typename T>
PYPTO_INLINE T mul(T a, T b) {
    if constexpr (Traits<T>::IS_FLOAT) {
        return a * b;
    } else {
        using U = typename Traits<T>::Unsigned;
        // 1u: 16-bit operands must not be promoted to a signed int that can overflow.
        return static_cast<T>(static_cast<U>(1u * static_cast<U>(a) * static_cast<U>(b)));
    }
}

template <typename T>
PYPTO_INLINE T neg(T a) {
    return sub(static_cast<T>(0), a);
}
PYPTO_INLINE float neg(float a) { return -a; }

// Integers truncate toward zero; a zero divisor gives 0, and the lowest value divided by -1 wraps.
template <typename T>
PYPTO_INLINE T div(T a, T b) {
    if constexpr (Traits<T>::IS_FLOAT) {
        return a / b;
    } else {
        if (b == 0) return 0;
        if constexpr (Traits<T>::LOWEST < 0) {
            if (b == -1) return neg(a);
        }
        return static_cast<T>(a / b);
    }
}

// Sign of the dividend. A zero divisor gives 0 for integers and NaN for floats.
template <typename T>
PYPTO_INLINE T fmod(T a, T b) {
    if constexpr (Traits<T>::IS_FLOAT) {
        return __builtin_fmodf(a, b);
    } else {
        if (b == 0) return 0;
        if constexpr (Traits<T>::LOWEST < 0) {
            if (b == -1) return 0;
        }
        return static_cast<T>(a % b);
    }
}

// Sign of the divisor.
template <typename T>
PYPTO_INLINE T floormod(T a, T b) {
    const T rest = fmod(a, b);
    return rest != 0 && ((rest < 0) != (b < 0)) ? static_cast<T>(rest + b) : rest;
}

template <typename T>
PYPTO_INLINE T floordiv(T a, T b) {
    if constexpr (Traits<T>::IS_FLOAT) {
        return __builtin_floorf(a / b);
    } else {
        return static_cast<T>(div(a, b) - (fmod(a, b) != 0 && ((a < 0) != (b < 0))));
    }
}

template <typename T>
PYPTO_INLINE T abs(T a) {
    if constexpr (Traits<T>::IS_FLOAT) {
        return __builtin_fabsf(a);
    } else {
        return a < 0 ? neg(a) : a;
    }
}

// NaN wins, as in numpy.maximum and numpy.minimum.
template <typename T>
PYPTO_INLINE T max(T a, T b) {
    if constexpr (Traits<T>::IS_FLOAT) {
        return ((a > b) | (a != a)) ? a : b;
    } else {
        return a > b ? a : b;
    }
}

template <typename T>
PYPTO_INLINE T min(T a, T b) {
    if constexpr (Traits<T>::IS_FLOAT) {
        return ((a < b) | (a != a)) ? a : b;
    } else {
        return a < b ? a : b;
    }
}

template <typename T>
PYPTO_INLINE T where(bool condition, T yes, T no) {
    return condition ? yes : no;
}

// A shift by the width or more leaves nothing (or only the sign).
template <typename T>
PYPTO_INLINE T shl(T a, T count) {
    using U = typename Traits<T>::Unsigned;
    return static_cast<uint64_t>(count) >= 8 * sizeof(T) ? static_cast<T>(0)
                                                         : static_cast<T>(static_cast<U>(static_cast<uint64_t>(a) << count));
}

template <typename T>
PYPTO_INLINE T shr(T a, T count) {
    constexpr int WIDTH = 8 * sizeof(T);
    const uint64_t steps = static_cast<uint64_t>(count);
    return static_cast<T>(steps >= WIDTH ? (a < 0 ? -1 : 0) : a >> steps);
}

template <typename T>
PYPTO_INLINE T ipow(T base, T exponent) {
    T result = 1;
    for (; exponent > 0; exponent = static_cast<T>(exponent / 2)) {
        if (exponent % 2 != 0) result = mul(result, base);
        base = mul(base, base);
    }
    return result;
}

}  // namespace pypto

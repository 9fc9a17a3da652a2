"""Integer arithmetic with floor semantics on 64-bit values."""

from __future__ import annotations

from pypto.core.errors import internal_error

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1


def fits_int64(value: int) -> bool:
    """Say whether `value` is a signed 64-bit integer."""
    return INT64_MIN <= value <= INT64_MAX


def floordiv(x: int, y: int) -> int:
    """Return x // y rounded towards minus infinity; InternalError if undefined in 64 bits."""
    _check_divisible(x, y, "floordiv")
    return x // y


def floormod(x: int, y: int) -> int:
    """Return x modulo y with the sign of y; InternalError if undefined in 64 bits."""
    _check_divisible(x, y, "floormod")
    return x % y


def _check_divisible(x: int, y: int, name: str) -> None:
    if y == 0:
        raise internal_error(f"{name}: division by zero")
    if x == INT64_MIN and y == -1:
        raise internal_error(f"{name}: {x} divided by -1 does not fit into 64 bits")


def gcd(a: int, b: int) -> int:
    """Return the greatest common divisor, non-negative; 0 is neutral."""
    a, b = abs(a), abs(b)
    while b:
        a, b = b, a % b
    return a


def lcm(a: int, b: int) -> int:
    """Return the least common multiple, non-negative; 0 if either is 0."""
    if a == 0 or b == 0:
        return 0
    return abs(a) // gcd(a, b) * abs(b)


def extended_euclidean(a: int, b: int) -> tuple[int, int, int]:
    """Return (g, x, y) with a*x + b*y == g, where g >= 0 is the greatest common divisor."""
    if b == 0:
        return (a, 1, 1) if a >= 0 else (-a, -1, 1)
    r0, r1 = a, b
    x0, x1 = 1, 0
    y0, y1 = 0, 1
    while r1:
        quotient = r0 // r1
        r0, r1 = r1, r0 - quotient * r1
        x0, x1 = x1, x0 - quotient * x1
        y0, y1 = y1, y0 - quotient * y1
    return (r0, x0, y0) if r0 >= 0 else (-r0, -x0, -y0)

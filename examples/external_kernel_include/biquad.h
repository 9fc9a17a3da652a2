// A second-order recursive filter, one sample at a time.
#pragma once

struct Biquad {
    float b0, b1, b2, a1, a2;
    float s1 = 0, s2 = 0;

    // A low-pass whose two poles lie at `pole` on the real axis, with unit gain for a constant signal.
    explicit Biquad(float pole) : b0((1 - pole) * (1 - pole)), b1(0), b2(0), a1(-2 * pole), a2(pole * pole) {}

    float step(float x) {
        float y = b0 * x + s1;
        s1 = b1 * x - a1 * y + s2;
        s2 = b2 * x - a2 * y;
        return y;
    }
};

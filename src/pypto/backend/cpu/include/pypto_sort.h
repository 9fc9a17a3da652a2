// Sorting records of a value and an index, which lie next to each other: value, then the bits of the index.
#pragma once

#include "pypto_kernel.h"

namespace pypto {

// The index of an FP16 record keeps its low 16 bits: two elements hold no more.
template <typename T>
struct Record {
    T value;
    uint32_t index;
};

template <typename T>
PYPTO_INLINE Record<T> record_at(const T* row, int64_t k) {
    Record<T> record;
    record.value = row[2 * k];
    uint32_t bits = 0;
    __builtin_memcpy(&bits, &row[2 * k + 1], sizeof(T));
    record.index = bits;
    return record;
}

template <typename T>
PYPTO_INLINE void set_record(T* row, int64_t k, const Record<T>& record) {
    row[2 * k] = record.value;
    __builtin_memcpy(static_cast<void*>(&row[2 * k + 1]), &record.index, sizeof(T));
}

// Does `a` come before `b`? Larger values first, then smaller indices.
template <typename T>
PYPTO_INLINE bool comes_before(const Record<T>& a, const Record<T>& b) {
    const float x = widen(a.value);
    const float y = widen(b.value);
    return x > y || (x == y && a.index < b.index);
}

// Each block of 32 columns of each row, in descending order.
template <typename T, int R, int C, int SC, int RS, int IRS>
PYPTO_INLINE void sort32(const Tile<T, R, C>& out, const Tile<T, R, SC, RS>& src, const Tile<uint32_t, R, SC, IRS>& index) {
    for (int64_t i = 0; i < R; ++i) {
        for (int64_t block = 0; block < SC; block += 32) {
            const int64_t count = least(SC - block, 32);
            Record<T> records[32];
            for (int64_t j = 0; j < count; ++j) {
                const Record<T> record{src.at(i, block + j), index.at(i, block + j)};
                int64_t k = j;
                for (; k > 0 && comes_before(record, records[k - 1]); --k) records[k] = records[k - 1];
                records[k] = record;
            }
            for (int64_t j = 0; j < count; ++j) set_record(out.row(i), block + j, records[j]);
        }
    }
}

// One sorted run of records, and how much of it has been taken.
template <typename T>
struct Run {
    const T* row;
    int64_t begin;
    int64_t end;
};

// Merges runs into `out` from record `at` on, ties from the earlier run. Stops early when one is used up if asked to.
template <typename T>
__attribute__((noinline)) void merge_runs(T* out, int64_t at, int64_t limit, Run<T>* runs, int count, bool stop_early) {
    while (at < limit) {
        int best = -1;
        for (int r = 0; r < count; ++r) {
            if (runs[r].begin >= runs[r].end) {
                if (stop_early) return;
                continue;
            }
            if (best < 0 || widen(record_at(runs[r].row, runs[r].begin).value) >
                                widen(record_at(runs[best].row, runs[best].begin).value)) {
                best = r;
            }
        }
        if (best < 0) return;
        set_record(out, at++, record_at(runs[best].row, runs[best].begin++));
    }
}

// Every four consecutive runs of `block` elements of a row become one; fewer than four at the end stay as they are.
template <typename T, int R, int C, int RS>
PYPTO_INLINE void merge_blocks(const Tile<T, R, C>& out, const Tile<T, R, C, RS>& src, int64_t block) {
    const int64_t records = block / 2;
    for (int64_t i = 0; i < R; ++i) {
        copy_row(out.row(i), 1, src.row(i), 1, C);
        for (int64_t at = 0; (at + 4 * records) * 2 <= C; at += 4 * records) {
            Run<T> runs[4];
            for (int r = 0; r < 4; ++r) runs[r] = {src.row(i), at + r * records, at + (r + 1) * records};
            merge_runs(out.row(i), at, at + 4 * records, runs, 4, false);
        }
    }
}

// One sorted list out of the sorted lists in single rows.
template <typename T, int C, typename... Lists>
PYPTO_INLINE void merge_lists(const Tile<T, 1, C>& out, bool stop_early, const Lists&... lists) {
    Run<T> runs[] = {{lists.data, 0, clip(lists.valid_cols, 0, Lists::COLS) / 2}...};
    clear_outside(out, 0, 0);
    merge_runs(out.data, 0, C / 2, runs, static_cast<int>(sizeof...(lists)), stop_early);
}

}  // namespace pypto

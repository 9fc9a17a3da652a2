// What all ranks of a program do together with their windows.
//
// Each operation begins and ends with a barrier: on entry everybody has stored what the others read, on exit nobody
// reads any more. So the cells of a signal are zero again, and one signal serves many operations.
#pragma once

#include "pypto_windows.h"

namespace pypto {

enum class Fold { SUM, MAX, MIN, PROD };

// One step of a reduction, rounded to the element type as an operator on tiles does.
template <Fold HOW, typename T>
PYPTO_INLINE T fold(T left, T right) {
    const auto a = widen(left), b = widen(right);
    return convert<T>(HOW == Fold::SUM ? add(a, b) : HOW == Fold::MAX ? max(a, b) : HOW == Fold::MIN ? min(a, b) : mul(a, b));
}

// The windows of all ranks, seen as the one given.
template <typename T, int N>
struct Windows {
    Tensor<T, N> of[MOST_RANKS];

    PYPTO_INLINE Windows(const Kernel& kernel, const Comm* comm, const Tensor<T, N>& local, const char* detail) {
        for (int rank = 0; rank < comm->nranks; ++rank) of[rank] = at_peer(kernel, comm, local, rank, detail);
    }
};

// Folds elements [begin, end) over all ranks, in the order of ranks, and writes the result to windows [first, last).
template <Fold HOW, typename T, int N>
__attribute__((noinline)) void fold_elements(const Windows<T, N>& windows, int ranks, int64_t begin, int64_t end, int first,
                                             int last) {
    const Tensor<T, N>& like = windows.of[0];
    const int64_t columns = like.shape[N - 1], step = like.stride[N - 1];
    while (begin < end) {
        const int64_t column = begin % columns;
        int64_t row = begin / columns, place = column * step;
        for (int i = N - 2; i >= 0; --i) {
            place += row % like.shape[i] * like.stride[i];
            row /= like.shape[i];
        }
        const int64_t count = columns - column < end - begin ? columns - column : end - begin;
        for (int64_t i = 0; i < count; ++i, place += step) {
            T value = windows.of[0].data[place];
            for (int rank = 1; rank < ranks; ++rank) value = fold<HOW>(value, windows.of[rank].data[place]);
            for (int rank = first; rank < last; ++rank) windows.of[rank].data[place] = value;
        }
        begin += count;
    }
}

// Every window := the reduction of all. Each rank does its share for everybody, so all get the same bits.
template <Fold HOW, typename T, int N, typename S, int M>
void allreduce(const Kernel& kernel, const Comm* comm, const Tensor<T, N>& target, const Comm* signals,
               const Tensor<S, M>& signal, const char* detail) {
    const Windows<T, N> windows(kernel, comm, target, detail);
    int64_t elements = 1;
    for (int i = 0; i < N; ++i) elements *= target.shape[i];
    const int64_t ranks = comm->nranks, me = comm->rank;
    barrier_of_ranks(kernel, signals, signal, detail);
    fold_elements<HOW>(windows, comm->nranks, elements * me / ranks, elements * (me + 1) / ranks, 0, comm->nranks);
    barrier_of_ranks(kernel, signals, signal, detail);
}

// Row r of rank r := the sum of row r of all.
template <typename T, int N, typename S, int M>
void reduce_scatter(const Kernel& kernel, const Comm* comm, const Tensor<T, N>& target, const Comm* signals,
                    const Tensor<S, M>& signal, const char* detail) {
    const Windows<T, N> windows(kernel, comm, target, detail);
    int64_t row = 1;
    for (int i = 1; i < N; ++i) row *= target.shape[i];
    barrier_of_ranks(kernel, signals, signal, detail);
    const int64_t count = target.shape[0] / comm->nranks * row;
    fold_elements<Fold::SUM>(windows, comm->nranks, comm->rank * count, (comm->rank + 1) * count, comm->rank, comm->rank + 1);
    barrier_of_ranks(kernel, signals, signal, detail);
}

template <int N>
PYPTO_INLINE Index<N> in_row(int64_t row) {
    Index<N> result{};
    result.at[0] = row;
    return result;
}

template <typename T, int N>
PYPTO_INLINE Index<N> rows_of(const Tensor<T, N>& tensor, int64_t rows) {
    Index<N> result = extents(tensor);
    result.at[0] = rows;
    return result;
}

// Every window := the window of the root.
template <typename T, int N, typename S, int M>
void broadcast(const Kernel& kernel, const Comm* comm, const Tensor<T, N>& target, const Comm* signals,
               const Tensor<S, M>& signal, int root, const char* detail) {
    const Tensor<T, N> source = at_peer(kernel, comm, target, root, detail);
    barrier_of_ranks(kernel, signals, signal, detail);
    if (comm->rank != root) {
        transfer<false>(kernel, target, in_row<N>(0), source, in_row<N>(0), extents(target), detail);
    }
    barrier_of_ranks(kernel, signals, signal, detail);
}

// Row r of every target := what rank r has.
template <typename T, int N, typename S, int M>
void allgather(const Kernel& kernel, const Tensor<T, N>& local, const Comm* comm, const Tensor<T, N>& target,
               const Comm* signals, const Tensor<S, M>& signal, const char* detail) {
    barrier_of_ranks(kernel, signals, signal, detail);
    for (int peer = 0; peer < comm->nranks; ++peer) {
        transfer<false>(kernel, at_peer(kernel, comm, target, peer, detail), in_row<N>(comm->rank), local, in_row<N>(0),
                        rows_of(local, 1), detail);
    }
    barrier_of_ranks(kernel, signals, signal, detail);
}

// Block r of the target := the block for this rank in the input of rank r.
template <typename T, int N, typename S, int M>
void all_to_all(const Kernel& kernel, const Tensor<T, N>& input, const Comm* comm, const Tensor<T, N>& target,
                const Comm* signals, const Tensor<S, M>& signal, const char* detail) {
    const int64_t rows = target.shape[0] / comm->nranks;
    barrier_of_ranks(kernel, signals, signal, detail);
    for (int peer = 0; peer < comm->nranks; ++peer) {
        transfer<false>(kernel, at_peer(kernel, comm, target, peer, detail), in_row<N>(comm->rank * rows), input,
                        in_row<N>(peer * rows), rows_of(target, rows), detail);
    }
    barrier_of_ranks(kernel, signals, signal, detail);
}

// The same for the first send_counts[peer] rows of each block; the receiver learns how many rows came.
template <typename T, int N, typename S, int M, int K>
void all_to_all_v(const Kernel& kernel, const Tensor<T, N>& input, const Comm* comm, const Tensor<T, N>& target,
                  const Comm* signals, const Tensor<S, M>& signal, const Tensor<int32_t, K>& send_counts,
                  const Comm* receivers, const Tensor<int32_t, 2>& recv_counts, const char* detail) {
    const int64_t most = target.shape[0] / comm->nranks;
    barrier_of_ranks(kernel, signals, signal, detail);
    for (int peer = 0; peer < comm->nranks; ++peer) {
        const int64_t wanted = *cell(kernel, send_counts, in_row<K>(peer), detail);
        const int64_t rows = wanted < 0 ? 0 : wanted < most ? wanted : most;
        transfer<false>(kernel, at_peer(kernel, comm, target, peer, detail), in_row<N>(comm->rank * most), input,
                        in_row<N>(peer * most), rows_of(target, rows), detail);
        const auto received = at_peer(kernel, receivers, recv_counts, peer, detail);
        *cell(kernel, received, in_row<2>(comm->rank), detail) = static_cast<int32_t>(rows);
    }
    barrier_of_ranks(kernel, signals, signal, detail);
}

}  // namespace pypto

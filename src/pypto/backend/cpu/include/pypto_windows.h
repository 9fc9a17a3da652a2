// What kernels of several ranks do together: read and write the windows of their peers, signal, wait.
//
// The windows of all ranks lie in one address space. In front of each window stands its communication context.
#pragma once

#include "pypto_atomic.h"
#include "pypto_kernel.h"

extern "C" int sched_yield();

namespace pypto {

constexpr int MOST_RANKS = 64;
constexpr int64_t COMM_BYTES = 1088;  // of a context, rounded up to the alignment of the window behind it

struct Comm {
    uint64_t reserved[2];
    int32_t rank;
    int32_t nranks;
    int32_t aborted;  // non-zero once a rank has failed: nobody waits for it any more
    int32_t unused;
    uint64_t windows[MOST_RANKS];  // address of this window in each rank
};
static_assert(__builtin_offsetof(Comm, rank) == 16 && __builtin_offsetof(Comm, nranks) == 20 &&
              __builtin_offsetof(Comm, aborted) == 24 && __builtin_offsetof(Comm, windows) == 32, "the runtime writes these places");

PYPTO_INLINE const Comm* comm(const Kernel& kernel, int slot) {
    return reinterpret_cast<const Comm*>(kernel.buffer(slot) - COMM_BYTES);
}

__attribute__((noinline, cold)) inline void no_such_peer(const PyptoCoreContext* core, int64_t peer, int64_t ranks,
                                                         const char* detail) {
    Message message;
    core->fail(core, message.add(detail).add(": peer ").add(peer).add(" of ").add(ranks).add(" ranks").text());
}

// The same view of the window that a peer has.
template <typename T, int N>
PYPTO_INLINE Tensor<T, N> at_peer(const Kernel& kernel, const Comm* comm, const Tensor<T, N>& local, int64_t peer,
                                  const char* detail) {
    if (peer < 0 || peer >= comm->nranks) no_such_peer(kernel.core(), peer, comm->nranks, detail);
    Tensor<T, N> remote = local;
    const auto* here = reinterpret_cast<const char*>(local.data);
    remote.data = reinterpret_cast<T*>(const_cast<char*>(here) + (comm->windows[peer] - comm->windows[comm->rank]));
    return remote;
}

template <typename T, int N>
PYPTO_INLINE Index<N> extents(const Tensor<T, N>& tensor) {
    Index<N> result;
    for (int i = 0; i < N; ++i) result.at[i] = tensor.shape[i];
    return result;
}

// ---- signals -----------------------------------------------------------------------------------------------------

// All that this rank wrote before is visible to who sees the signal.
template <bool SET, typename T, int N>
PYPTO_INLINE void notify(const Kernel& kernel, const Tensor<T, N>& target, const Index<N>& index, int64_t value,
                         const char* detail) {
    T* to = cell(kernel, target, index, detail);
    if (SET) {
        __atomic_store_n(to, static_cast<T>(value), __ATOMIC_RELEASE);
    } else {
        __atomic_fetch_add(to, static_cast<T>(value), __ATOMIC_ACQ_REL);
    }
}

enum class Until { EQ, GE };

// Waits for another rank, and gives up when the run is over or a rank has failed.
template <typename Ready>
PYPTO_INLINE void wait_until(const Kernel& kernel, const Comm* comm, const char* detail, const Ready& ready) {
    const PyptoCoreContext* core = kernel.core();
    while (!ready()) {
        if ((__atomic_load_n(core->cancelled, __ATOMIC_RELAXED) | __atomic_load_n(&comm->aborted, __ATOMIC_RELAXED)) != 0) {
            core->fail(core, detail);
        }
        sched_yield();
    }
}

template <Until HOW, typename T, int N>
PYPTO_INLINE void wait(const Kernel& kernel, const Comm* comm, const Tensor<T, N>& signal, const Index<N>& index,
                       int64_t expected, const char* detail) {
    const T* from = cell(kernel, signal, index, detail);
    wait_until(kernel, comm, detail, [&] {
        const int64_t now = static_cast<int64_t>(__atomic_load_n(from, __ATOMIC_ACQUIRE));
        return HOW == Until::EQ ? now == expected : now >= expected;
    });
}

// Returns when all ranks have come. Cell r of a signal counts arrivals of rank r that this rank has not used up yet, so
// all cells are zero again when everybody has left.
template <typename T, int N>
PYPTO_INLINE void barrier_of_ranks(const Kernel& kernel, const Comm* comm, const Tensor<T, N>& signal,
                                   const char* detail) {
    const int64_t stride = signal.stride[0];
    for (int peer = 0; peer < comm->nranks; ++peer) {
        T* cells = at_peer(kernel, comm, signal, peer, detail).data;
        __atomic_fetch_add(cells + comm->rank * stride, static_cast<T>(1), __ATOMIC_ACQ_REL);
    }
    for (int peer = 0; peer < comm->nranks; ++peer) {
        T* arrived = signal.data + peer * stride;
        wait_until(kernel, comm, detail, [&] { return __atomic_load_n(arrived, __ATOMIC_ACQUIRE) >= 1; });
        __atomic_fetch_sub(arrived, static_cast<T>(1), __ATOMIC_ACQ_REL);
    }
}

// ---- transfers ---------------------------------------------------------------------------------------------------

// to[to_offset : + shape] := from[from_offset : + shape], or += in one step per element.
template <bool ATOMIC, typename T, int N>
__attribute__((noinline)) void transfer(const Kernel& kernel, const Tensor<T, N>& to, const Index<N>& to_offset,
                                        const Tensor<T, N>& from, const Index<N>& from_offset, const Index<N>& shape,
                                        const char* detail) {
    kernel.check(N, to.shape, to_offset.at, shape.at, detail);
    kernel.check(N, from.shape, from_offset.at, shape.at, detail);
    int64_t rows = 1;
    for (int i = 0; i < N - 1; ++i) rows *= shape.at[i];
    const int64_t columns = shape.at[N - 1];
    for (int64_t row = 0; row < rows; ++row) {
        int64_t rest = row, out = to_offset.at[N - 1] * to.stride[N - 1], in = from_offset.at[N - 1] * from.stride[N - 1];
        for (int i = N - 2; i >= 0; --i) {
            const int64_t index = rest % shape.at[i];
            rest /= shape.at[i];
            out += (to_offset.at[i] + index) * to.stride[i];
            in += (from_offset.at[i] + index) * from.stride[i];
        }
        for (int64_t column = 0; column < columns; ++column) {
            const T value = from.data[in + column * from.stride[N - 1]];
            T* target = to.data + out + column * to.stride[N - 1];
            if (ATOMIC) {
                atomic_add(target, widen(value));
            } else {
                *target = value;
            }
        }
    }
}

}  // namespace pypto

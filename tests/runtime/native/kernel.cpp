// A kernel whose behaviour is chosen by its first scalar, so that one compilation serves many tests.
#include <stdlib.h>
#include <time.h>

#include "pypto_abi.h"

static const PyptoTensorDescriptor& tensor(int64_t* args, int i) {
    return *reinterpret_cast<const PyptoTensorDescriptor*>(args[i]);
}

static uint64_t element_offset(const PyptoTensorDescriptor& t, uint64_t index) {
    uint64_t offset = t.start_offset;
    for (int k = static_cast<int>(t.ndims) - 1; k >= 0; --k) {
        offset += index % t.shapes[k] * t.strides[k];
        index /= t.shapes[k];
    }
    return offset;
}

static uint64_t numel(const PyptoTensorDescriptor& t) {
    uint64_t n = 1;
    for (uint32_t k = 0; k < t.ndims; ++k) n *= t.shapes[k];
    return n;
}

static uint32_t& at(const PyptoTensorDescriptor& t, uint64_t index) {
    return reinterpret_cast<uint32_t*>(t.addr)[element_offset(t, index)];
}

static void pause_ns(long ns) {
    timespec wait = {0, ns};
    nanosleep(&wait, nullptr);
}

static bool cancelled(const PyptoCoreContext* core) {
    return __atomic_load_n(core->cancelled, __ATOMIC_RELAXED) != 0;
}

// Counts this call in `counter` and waits until `n` calls are counted; false when the run is over, or after five
// seconds.
static bool meet(uint32_t& counter, uint32_t n, const PyptoCoreContext* core) {
    __atomic_fetch_add(&counter, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < 15000 && !cancelled(core); ++i) {
        if (__atomic_load_n(&counter, __ATOMIC_SEQ_CST) >= n) return true;
        pause_ns(100000);
    }
    return false;
}

static void wait_for(uint32_t& flag, uint32_t value, const PyptoCoreContext* core) {
    for (int i = 0; i < 15000 && !cancelled(core); ++i) {
        if (__atomic_load_n(&flag, __ATOMIC_ACQUIRE) == value) return;
        pause_ns(100000);
    }
    core->fail(core, "the other lane does not answer");
}

enum Op {
    MIX = 0,
    MEET = 1,
    BLOCKS = 2,
    EXCHANGE = 3,
    FAIL = 4,
    SCALARS = 5,
    SLOW_ADD = 6,
    ARENA = 7,
    NOTHING = 8,
    CRASH = 9,
    LISTEN = 10
};

extern "C" {

__attribute__((visibility("default"))) extern const uint64_t kernel_workspace_bytes;
const uint64_t kernel_workspace_bytes = 4096;

// scalars: op, number of tensors, then what the op needs
__attribute__((visibility("default"))) void kernel_entry(int64_t* args) {
    auto* dispatch = reinterpret_cast<const PyptoDispatchContext*>(args[PYPTO_DISPATCH_SLOT]);
    auto* core = reinterpret_cast<const PyptoCoreContext*>(args[PYPTO_CORE_SLOT]);
    int n = 0;
    // The payload does not tell where scalars start; the tests put the count into the first scalar's upper
    // half.
    while ((static_cast<uint64_t>(args[n]) >> 32) != (0xABCD0000u | static_cast<uint32_t>(n))) ++n;
    Op op = static_cast<Op>(args[n] & 0xFFFFFFFF);
    int64_t* scalars = args + n + 1;
    switch (op) {
        case MIX: {  // scalars: salt, mask of read tensors, mask of written tensors
            uint32_t acc = static_cast<uint32_t>(scalars[0]);
            for (int i = 0; i < n; ++i) {
                if (!(scalars[1] >> i & 1)) continue;
                for (uint64_t k = 0; k < numel(tensor(args, i)); ++k) acc = acc * 31 + at(tensor(args, i), k);
            }
            for (int i = 0; i < n; ++i) {
                if (!(scalars[2] >> i & 1)) continue;
                for (uint64_t k = 0; k < numel(tensor(args, i)); ++k) {
                    at(tensor(args, i), k) = acc + static_cast<uint32_t>(k);
                }
            }
            break;
        }
        case MEET:  // scalars: how many calls must be inside at once
            if (!meet(at(tensor(args, n - 1), 0), static_cast<uint32_t>(scalars[0]), core)) {
                core->fail(core, "the others did not come");
            }
            break;
        case BLOCKS:  // counts each block index, and writes the block count
            __atomic_fetch_add(&at(tensor(args, 0), dispatch->block_idx), 1, __ATOMIC_RELAXED);
            at(tensor(args, 1), 0) = static_cast<uint32_t>(dispatch->block_num);
            break;
        case EXCHANGE:  // The cube lane asks, the vector lane answers, three times; sub-blocks count
                        // themselves.
            for (uint32_t round = 1; round <= 3; ++round) {
                uint32_t& question = at(tensor(args, 0), 0);
                uint32_t& answer = at(tensor(args, 0), 1);
                if (scalars[0] == 0) break;
                // Which lane this is shows in the order of arrival: the first one asks.
                static thread_local bool asks;
                if (round == 1) asks = __atomic_fetch_add(&at(tensor(args, 0), 2), 1, __ATOMIC_SEQ_CST) == 0;
                if (asks) {
                    __atomic_store_n(&question, round, __ATOMIC_RELEASE);
                    wait_for(answer, round, core);
                } else {
                    wait_for(question, round, core);
                    __atomic_store_n(&answer, round, __ATOMIC_RELEASE);
                }
            }
            __atomic_fetch_add(&at(tensor(args, 0), 3 + core->sub_block_id), 1, __ATOMIC_SEQ_CST);
            break;
        case FAIL: core->fail(core, "made to fail (demo.py:12)"); break;
        case SCALARS: {
            auto* out = reinterpret_cast<uint64_t*>(tensor(args, 0).addr);
            for (int i = 0; i < 4; ++i) out[i] = static_cast<uint64_t>(scalars[i]);
            break;
        }
        case SLOW_ADD:  // out = in + 1, after a while
            pause_ns(2000000);
            for (uint64_t k = 0; k < numel(tensor(args, 1)); ++k)
                at(tensor(args, 1), k) = at(tensor(args, 0), k) + 1;
            break;
        case ARENA: {
            auto* arena = static_cast<uint32_t*>(core->workspace);
            for (int i = 0; i < 1024; ++i) arena[i] = static_cast<uint32_t>(i);
            at(tensor(args, 0), 0) =
                arena[1023] + static_cast<uint32_t>(reinterpret_cast<uint64_t>(arena) % 64);
            break;
        }
        case LISTEN:  // The vector lane waits for a tile; the cube lane does something else meanwhile.
            if (core->slot != 0) core->lanes->front(core, 5, 0, 0, "the test's queue");
            else if (!meet(at(tensor(args, 0), 0), 1000, core)) core->fail(core, "cancelled");
            break;
        case NOTHING: break;
        case CRASH:  // scalars: 0 wild access, 1 division by zero, 2 exception, 3 failed assertion
            if (scalars[0] == 3) abort();
            if (scalars[0] == 0) *reinterpret_cast<volatile int*>(uintptr_t{64}) = 1;
            if (scalars[0] == 1)
                at(tensor(args, 0), 0) = static_cast<uint32_t>(7 / static_cast<int>(scalars[1]));
#ifdef __cpp_exceptions  // which generated kernels do without
            if (scalars[0] == 2) throw 5;
#endif
            break;
    }
}
}

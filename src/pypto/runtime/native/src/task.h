// A task slot: what a kernel gets, who waits for it, and how far it is.
//
// Slots are recycled; `serial` tells one use of a slot from the next. Edges live in the slot of the task that
// waits, so linking two tasks allocates nothing: an edge is only read while its owner is still waiting.
#pragma once

#include <atomic>
#include <cstring>
#include <memory>

#include "crash_guard.h"
#include "pto_orchestration_api.h"

namespace pypto {

using KernelEntry = void (*)(int64_t*);

struct Kernel {
    int32_t func_id;
    int32_t core_type;  // 0 vector, 1 cube
    KernelEntry entry;
    uint64_t workspace_bytes;
    const char* name;
    CrashGuard::Code code;  // where its library's instructions are
};

struct Task;

struct Edge {
    Task* successor;
    Edge* next;
};

// Head of the successor list of a task that is done.
inline Edge* closed_list() { return reinterpret_cast<Edge*>(uintptr_t{1}); }

struct Predicate {
    const void* element = nullptr;
    DataType dtype = DataType::INT32;
    PredicateOp op = PredicateOp::NE;
    int64_t target = 0;

    bool holds() const {
        int64_t value = 0;
        switch (dtype) {
            case DataType::INT64: std::memcpy(&value, element, 8); break;
            case DataType::INT32: {
                int32_t v;
                std::memcpy(&v, element, 4);
                value = v;
                break;
            }
            case DataType::INT16: {
                int16_t v;
                std::memcpy(&v, element, 2);
                value = v;
                break;
            }
            default: {
                int8_t v;
                std::memcpy(&v, element, 1);
                value = v;
                break;
            }
        }
        switch (op) {
            case PredicateOp::EQ: return value == target;
            case PredicateOp::NE: return value != target;
            case PredicateOp::GT: return value > target;
            case PredicateOp::LT: return value < target;
            case PredicateOp::GE: return value >= target;
            default: return value <= target;
        }
    }
};

struct alignas(64) Task {
    // Touched by several threads.
    std::atomic<Edge*> successors{closed_list()};
    std::atomic<int32_t> pending{0};         // unfinished predecessors
    std::atomic<int32_t> blocks_running{0};  // blocks that have not returned
    Task* next = nullptr;                    // in the ready queue or the free list
    int32_t next_block = 0;                  // guarded by the ready queue

    // Written by the orchestrating thread before the task is published.
    uint32_t index = 0;
    uint64_t serial = 0;
    uint64_t marked_by = 0;     // serial of the last task that took an edge from this one
    uint32_t manual_scope = 0;  // outermost manual scope, 0 outside
    int32_t block_num = 1;
    uint32_t tensor_count = 0;
    uint32_t scalar_count = 0;
    uint32_t hold_count = 0;
    bool gang = false;  // all blocks start together
    uint8_t lane_count = 0;
    const Kernel* lanes[3] = {};
    int8_t slots[3] = {};  // which lane of a cluster each is
    Predicate predicate;
    uint64_t scalars[PYPTO_MAX_SCALARS];

    uint32_t tensor_capacity = 0;
    uint32_t hold_capacity = 0;
    uint32_t edge_capacity = 0;
    std::unique_ptr<PyptoTensorDescriptor[]> tensors;
    std::unique_ptr<PyptoBuffer*[]> holds;  // buffers that must live until the task is done
    std::unique_ptr<Edge[]> edges;          // one per predecessor

    bool done() const { return successors.load(std::memory_order_acquire) == closed_list(); }
    bool simple() const { return block_num == 1 && lane_count <= 1; }

    template <class T>
    static void reserve(std::unique_ptr<T[]>& array, uint32_t& capacity, uint32_t needed) {
        if (needed <= capacity) return;
        uint32_t grown = capacity < 4 ? 4 : capacity;
        while (grown < needed) grown *= 2;
        array.reset(new T[grown]);
        capacity = grown;
    }
};

}  // namespace pypto

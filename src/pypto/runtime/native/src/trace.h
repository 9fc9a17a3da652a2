// What happened in a run, for people: tasks, edges, and when each block ran. Recorded only when asked for.
#pragma once

#include <chrono>
#include <mutex>
#include <vector>

#include "task.h"

namespace pypto {

struct TraceTask {
    uint64_t serial;
    int32_t func_ids[3];
    int32_t block_num;
};
struct TraceEdge {
    uint64_t from, to;
};
struct TraceBlock {
    uint64_t serial;
    int32_t block, lane;
    int64_t start_ns, end_ns;
    uint64_t thread;
};

inline int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

struct Trace {
    std::mutex mutex;
    std::vector<TraceTask> tasks;
    std::vector<TraceEdge> edges;
    std::vector<TraceBlock> blocks;

    void add(const TraceBlock& block) {
        std::lock_guard<std::mutex> guard(mutex);
        blocks.push_back(block);
    }
};

}  // namespace pypto

// What happened in a run, for people: tasks, edges, when each block ran, what scopes held, and the contents of
// arguments. Recorded only when asked for.
#pragma once

#include <chrono>
#include <cstdio>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "buffers.h"
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
// A scope of the orchestration. Bytes are those of buffers made in it; the peak is of all that lived meanwhile and
// was made since it began.
struct TraceScope {
    int64_t parent;  // place in the list; -1 for the outermost
    int32_t manual;
    int32_t depth;
    int64_t tasks, buffers, bytes, peak_bytes;
    int64_t live_before;
};
// Contents of one argument before or after its task, row-major in the file of dumps.
struct TraceDump {
    uint64_t serial;
    int32_t argument, after, dtype, ndims;
    uint32_t shapes[PYPTO_MAX_DIMS];
    uint32_t tag;
    uint64_t offset, bytes;
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
    std::vector<TraceScope> scopes;
    std::vector<TraceDump> dumps;
    std::atomic<int64_t> live_bytes{0};

    Trace(int32_t level, const char* dump_path)
        : dump_level_(level), file_(level > 0 ? std::fopen(dump_path, "wb") : nullptr) {}
    ~Trace() {
        if (file_ != nullptr) std::fclose(file_);
    }
    Trace(const Trace&) = delete;
    Trace& operator=(const Trace&) = delete;

    void add(const TraceBlock& block) {
        std::lock_guard<std::mutex> guard(mutex);
        blocks.push_back(block);
    }

    // --- scopes; on the orchestrating thread

    void begin_scope(bool manual) {
        int64_t depth = static_cast<int64_t>(open_.size());
        scopes.push_back(TraceScope{depth == 0 ? -1 : open_.back(), manual, static_cast<int32_t>(depth), 0, 0, 0, 0,
                                    live_bytes.load()});
        open_.push_back(static_cast<int64_t>(scopes.size()) - 1);
    }
    void end_scope() {
        if (!open_.empty()) open_.pop_back();
    }
    void made(Buffer& buffer) {
        buffer.live_bytes = &live_bytes;
        int64_t bytes = static_cast<int64_t>(buffer.capacity);
        int64_t live = live_bytes.fetch_add(bytes) + bytes;
        for (int64_t i : open_) {
            TraceScope& scope = scopes[static_cast<size_t>(i)];
            scope.peak_bytes = std::max(scope.peak_bytes, live - scope.live_before);
        }
        if (open_.empty()) return;
        scopes[static_cast<size_t>(open_.back())].buffers += 1;
        scopes[static_cast<size_t>(open_.back())].bytes += bytes;
    }

    // --- tasks

    void submitted(const Task& task, const CoreTaskArgs& args) {
        TraceTask entry{task.serial, {-1, -1, -1}, task.block_num};
        for (uint32_t i = 0; i < task.lane_count; ++i) entry.func_ids[i] = task.lanes[i]->func_id;
        tasks.push_back(entry);
        if (!open_.empty()) scopes[static_cast<size_t>(open_.back())].tasks += 1;
        if (file_ == nullptr) return;
        Payload payload{dump_level_ > 1 ? ~0u : args.dump_mask(), {}};
        for (uint32_t i = 0; i < args.tensor_count(); ++i) payload.tags[i] = args.tag(i);
        std::lock_guard<std::mutex> guard(mutex);
        payloads_.emplace(task.serial, payload);
    }

    // Writes what goes into a task before it, and what comes out after it.
    void dump(const Task& task, bool after) {
        if (file_ == nullptr || task.lane_count == 0) return;
        std::lock_guard<std::mutex> guard(mutex);
        const Payload& payload = payloads_.at(task.serial);
        for (uint32_t i = 0; i < task.tensor_count; ++i) {
            TensorArgType tag = payload.tags[i];
            bool out = tag == TensorArgType::OUTPUT || tag == TensorArgType::OUTPUT_EXISTING;
            bool wanted = after ? tag != TensorArgType::INPUT : !out;
            if (wanted && (payload.mask >> i & 1) != 0) write(task, i, after, tag);
        }
        if (after) payloads_.erase(task.serial);
    }

private:
    struct Payload {
        uint32_t mask;
        TensorArgType tags[PYPTO_MAX_TENSORS];
    };

    void write(const Task& task, uint32_t argument, bool after, TensorArgType tag) {
        const PyptoTensorDescriptor& t = task.tensors[argument];
        uint64_t element = pypto_element_bytes(t.dtype);
        uint64_t count = 1;
        for (uint32_t k = 0; k < t.ndims; ++k) count *= t.shapes[k];
        TraceDump entry{task.serial,       static_cast<int32_t>(argument), after, static_cast<int32_t>(t.dtype),
                        static_cast<int32_t>(t.ndims), {},      static_cast<uint32_t>(tag), written_,
                        count * element};
        std::memcpy(entry.shapes, t.shapes, sizeof entry.shapes);
        const char* base = reinterpret_cast<const char*>(t.addr) + t.start_offset * element;
        for (uint64_t i = 0; i < count; ++i) {
            uint64_t offset = 0, rest = i;
            for (uint32_t k = t.ndims; k-- > 0; rest /= t.shapes[k]) offset += rest % t.shapes[k] * t.strides[k];
            std::fwrite(base + offset * element, element, 1, file_);
        }
        written_ += entry.bytes;
        dumps.push_back(entry);
    }

    const int32_t dump_level_;
    std::FILE* const file_;
    uint64_t written_ = 0;
    std::unordered_map<uint64_t, Payload> payloads_;
    std::vector<int64_t> open_;
};

}  // namespace pypto

// All lanes that run at the same time for one task: those of one block, or of all blocks that start together.
#pragma once

#include <memory>

#include "cluster.h"
#include "task.h"

namespace pypto {

class LaneGroup {
public:
    // The blocks `first` ... `first + count - 1` of `task`.
    LaneGroup(const Task& task, int32_t first, int32_t count, const std::atomic<int32_t>& cancelled)
        : first_(first), is_whole_(count == task.block_num), cancelled_(cancelled) {
        for (uint32_t i = 0; i < task.lane_count; ++i) slots_ |= 1u << task.slots[i];
        for (int32_t i = 0; i < count; ++i) {
            clusters_.push_back(std::make_unique<Cluster>(slots_, count == 1, cancelled));
        }
    }

    Cluster& cluster(int32_t block) { return *clusters_[static_cast<size_t>(block - first_)]; }

    // After the lane's failure, if any, is known to the run: the lanes that waited for it fail later.
    void finish(int32_t block, int32_t slot) {
        cluster(block).finish(slot);
        std::lock_guard<std::mutex> guard(mutex_);
        ++finished_[kind_of(slot)];
        changed_.notify_all();
    }

    // Signals among the lanes of one kind in all blocks: when all have sent one, all receive one.
    bool signal_kind(int32_t block, int32_t slot, int32_t event, std::string& problem) {
        if (!is_whole_) return refuse(problem);
        std::lock_guard<std::mutex> guard(mutex_);
        int kind = kind_of(slot);
        Sent& sent = sent_[kind][event];
        sent.counts.resize(clusters_.size() * kLaneSlots);
        ++sent.counts[static_cast<size_t>(block - first_) * kLaneSlots + slot];
        uint32_t by_all = ~0u;
        for (size_t i = 0; i < sent.counts.size(); ++i) {
            if (mask_of(kind) >> i % kLaneSlots & 1) by_all = std::min(by_all, sent.counts[i]);
        }
        for (; sent.delivered < by_all; ++sent.delivered) {
            for (auto& cluster : clusters_) cluster->receive(mask_of(kind), event);
        }
        return true;
    }

    // Waits until `participants` lanes (0: all) of the kinds in the mask have come.
    bool barrier(int32_t slot, uint32_t kinds, int32_t participants, std::string& problem) {
        if (!is_whole_) return refuse(problem);
        // Where one lane does the work of all kinds, it takes part for all.
        if (lane_count() == 1 || (kinds >> kind_of(slot) & 1) == 0) kinds = 3;
        std::unique_lock<std::mutex> lock(mutex_);
        int64_t all = 0, finished = 0;
        for (int kind = 0; kind < 2; ++kind) {
            if (kinds >> kind & 1) all += clusters_.size() * lanes_in(mask_of(kind));
        }
        int64_t needed = participants > 0 ? std::min<int64_t>(participants, all) : all;
        Barrier& barrier = barriers_[kinds];
        uint64_t generation = barrier.generation;
        if (++barrier.arrived >= needed) {
            barrier.arrived = 0;
            ++barrier.generation;
            changed_.notify_all();
            return true;
        }
        while (barrier.generation == generation) {
            finished = 0;
            for (int kind = 0; kind < 2; ++kind) {
                if (kinds >> kind & 1) finished += finished_[kind];
            }
            if (cancelled_.load(std::memory_order_relaxed) != 0) {
                problem = "given up, because the run is over";
                return false;
            }
            if (all - finished < needed) {
                problem = "waits for ever: " + std::to_string(finished) + " of " + std::to_string(all) +
                          " lanes have returned without it";
                return false;
            }
            changed_.wait_for(lock, std::chrono::milliseconds(20));
        }
        return true;
    }

private:
    struct Sent {
        std::vector<uint32_t> counts;  // by block and slot
        uint32_t delivered = 0;
    };
    struct Barrier {
        int64_t arrived = 0;
        uint64_t generation = 0;
    };

    static int kind_of(int32_t slot) { return slot == kCubeLane ? 1 : 0; }
    uint32_t mask_of(int kind) const { return slots_ & (kind == 1 ? 1u << kCubeLane : kVectorLanes); }
    static uint32_t lanes_in(uint32_t mask) { return static_cast<uint32_t>(__builtin_popcount(mask)); }
    uint32_t lane_count() const { return lanes_in(slots_); }

    static bool refuse(std::string& problem) {
        problem = "all blocks must run at the same time for it; launch them with sync_start=True";
        return false;
    }

    const int32_t first_;
    const bool is_whole_;
    const std::atomic<int32_t>& cancelled_;
    uint32_t slots_ = 0;
    std::vector<std::unique_ptr<Cluster>> clusters_;
    std::mutex mutex_;
    std::condition_variable changed_;
    int64_t finished_[2] = {};  // vector, cube
    Sent sent_[2][kEvents];
    Barrier barriers_[4];
};

}  // namespace pypto

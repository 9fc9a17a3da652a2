// The lanes of one block: queues of tiles between them, events, and how one waits for another.
//
// A wait ends without success when the run is over, when every lane that could end it has returned, and when
// all lanes of the block wait for one another. So a wrong program ends with a message instead of hanging.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "ready_queue.h"

namespace pypto {

enum LaneSlot : int32_t { kCubeLane = 0, kVectorLane0 = 1, kVectorLane1 = 2 };
constexpr int kLaneSlots = 3;
constexpr int kEvents = 14;
constexpr uint32_t kVectorLanes = 1u << kVectorLane0 | 1u << kVectorLane1;

inline const char* lane_name(int32_t slot) {
    static const char* const kNames[kLaneSlots] = {"AIC", "AIV0", "AIV1"};
    return kNames[slot];
}

// Tiles on their way from one lane to another, oldest first.
class TileQueue {
public:
    TileQueue() = default;
    TileQueue(const TileQueue&) = delete;
    TileQueue& operator=(const TileQueue&) = delete;
    ~TileQueue() {
        for (const Slot& slot : filled_) std::free(slot.data);
        for (const Slot& slot : spare_) std::free(slot.data);
        std::free(open_.data);
    }

    void bound(uint64_t slot_bytes, int32_t slots) {
        slot_bytes_ = std::max(slot_bytes_, slot_bytes);
        slots_ = std::max(slots_, slots);
    }
    uint64_t slot_bytes() const { return slot_bytes_; }
    bool full() const { return slots_ > 0 && filled_.size() >= static_cast<size_t>(slots_); }
    bool empty() const { return filled_.empty(); }

    // Null when there is no memory.
    void* reserve(uint64_t bytes) {
        if (open_.data == nullptr && !spare_.empty()) {
            open_ = spare_.back();
            spare_.pop_back();
        }
        if (open_.bytes < bytes) {
            std::free(open_.data);
            open_ = Slot{};
            if (posix_memalign(&open_.data, 64, bytes) != 0) open_.data = nullptr;
            if (open_.data != nullptr) open_.bytes = bytes;
        }
        return open_.data;
    }
    void push() {
        filled_.push_back(open_);
        open_ = Slot{};
    }
    const void* front() const { return filled_.front().data; }
    void pop() {
        spare_.push_back(filled_.front());
        filled_.pop_front();
    }

private:
    struct Slot {
        void* data = nullptr;
        uint64_t bytes = 0;
    };
    std::deque<Slot> filled_;
    std::vector<Slot> spare_;
    Slot open_;  // reserved, not yet handed over
    uint64_t slot_bytes_ = 0;
    int32_t slots_ = 0;  // 0: as many as it takes
};

class Cluster {
public:
    // `lanes`: mask of the slots that have a lane. `alone`: no other block takes part in its events.
    Cluster(uint32_t lanes, bool alone, const std::atomic<int32_t>& cancelled)
        : lanes_(lanes), alone_(alone), cancelled_(cancelled) {}

    bool has(int32_t slot) const { return (lanes_ >> slot & 1) != 0; }
    uint32_t lanes() const { return lanes_; }

    void finish(int32_t slot) {
        std::lock_guard<std::mutex> guard(mutex_);
        finished_ |= 1u << slot;
        changed();
    }

    // ---- queues. What fails returns null or false with the reason in `problem`.

    void open(int32_t pipe, int32_t directions, uint64_t slot_bytes, int32_t slots) {
        std::lock_guard<std::mutex> guard(mutex_);
        for (int to_cube = 0; to_cube < 2; ++to_cube) {
            if ((directions >> to_cube & 1) == 0) continue;
            for (TileQueue& queue : pipe_of(pipe).queues[to_cube]) queue.bound(slot_bytes, slots);
        }
        changed();
    }

    void* reserve(int32_t slot, int32_t pipe, bool to_cube, int32_t vector_lane, uint64_t bytes, bool checked,
                  const char* what, std::string& problem) {
        int32_t reader = to_cube ? kCubeLane : kVectorLane0 + vector_lane;
        if (!has(reader)) {
            problem = std::string("the task has no lane ") + lane_name(reader) + " to receive it";
            return nullptr;
        }
        Lock lock(mutex_);
        TileQueue& queue = pipe_of(pipe).queues[to_cube][vector_lane];
        if (checked && queue.slot_bytes() != 0 && bytes > queue.slot_bytes()) {
            problem = "a tile of " + std::to_string(bytes) + " bytes does not fit a slot of " +
                      std::to_string(queue.slot_bytes()) + " bytes";
            return nullptr;
        }
        if (!await(lock, slot, 1u << reader, what, [&] { return !queue.full(); }, problem)) return nullptr;
        void* place = queue.reserve(bytes + kSlotHead);
        if (place == nullptr) problem = "out of memory";
        return place;
    }

    void push(int32_t pipe, bool to_cube, int32_t vector_lane) {
        std::lock_guard<std::mutex> guard(mutex_);
        pipe_of(pipe).queues[to_cube][vector_lane].push();
        changed();
    }

    const void* front(int32_t slot, int32_t pipe, bool to_cube, int32_t vector_lane, const char* what,
                      std::string& problem) {
        int32_t writer = to_cube ? kVectorLane0 + vector_lane : kCubeLane;
        if (!has(writer)) {
            problem = std::string("the task has no lane ") + lane_name(writer) + " to send it";
            return nullptr;
        }
        Lock lock(mutex_);
        TileQueue& queue = pipe_of(pipe).queues[to_cube][vector_lane];
        if (!await(lock, slot, 1u << writer, what, [&] { return !queue.empty(); }, problem)) return nullptr;
        return queue.front();
    }

    void pop(int32_t pipe, bool to_cube, int32_t vector_lane) {
        std::lock_guard<std::mutex> guard(mutex_);
        pipe_of(pipe).queues[to_cube][vector_lane].pop();
        changed();
    }

    // ---- events

    // Both sides of a block (scope 2): a signal of the cube lane reaches every vector lane, one of every
    // vector lane together reaches the cube lane. A lane that plays both parts signals itself.
    void signal_other_side(int32_t slot, int32_t event) {
        std::lock_guard<std::mutex> guard(mutex_);
        uint32_t others = slot == kCubeLane ? lanes_ & kVectorLanes : lanes_ & 1u << kCubeLane;
        if (others == 0) {
            deliver(1u << slot, event);
        } else if (slot == kCubeLane) {
            deliver(others, event);
        } else {
            collect(2, slot, event, others);
        }
        changed();
    }

    // The vector lanes of a block among themselves (scope 1).
    void signal_vector_lanes(int32_t slot, int32_t event) {
        std::lock_guard<std::mutex> guard(mutex_);
        if (slot == kCubeLane) deliver(1u << slot, event);
        else collect(1, slot, event, lanes_ & kVectorLanes);
        changed();
    }

    // From the lanes of other blocks.
    void receive(uint32_t slots, int32_t event) {
        std::lock_guard<std::mutex> guard(mutex_);
        deliver(slots, event);
        changed();
    }

    bool wait_event(int32_t slot, int32_t event, const char* what, std::string& problem) {
        Lock lock(mutex_);
        uint32_t& pending = pending_[slot][event];
        uint32_t others = alone_ ? lanes_ & ~(1u << slot) : kAnybody;
        if (!await(lock, slot, others, what, [&] { return pending > 0; }, problem)) return false;
        --pending;
        return true;
    }

    static constexpr uint64_t kSlotHead = 64;  // a kernel's description of the tile, ahead of its elements

private:
    using Lock = std::unique_lock<std::mutex>;

    struct Pipe {
        int32_t id = 0;
        TileQueue queues[2][2];  // by direction and vector lane
    };
    struct Waiter {
        const char* what;
        std::function<bool()> ready;
    };
    static constexpr uint32_t kAnybody = ~0u;  // also lanes of other blocks
    static constexpr int kSpins = 200;
    static constexpr int kYields = 50;

    Pipe& pipe_of(int32_t id) {
        for (Pipe& pipe : pipes_) {
            if (pipe.id == id) return pipe;
        }
        pipes_.emplace_back();
        pipes_.back().id = id;
        return pipes_.back();
    }

    // After every change, with the lock held.
    void changed() {
        changes_.fetch_add(1, std::memory_order_release);
        changed_.notify_all();
    }

    void deliver(uint32_t slots, int32_t event) {
        for (int slot = 0; slot < kLaneSlots; ++slot) pending_[slot][event] += slots >> slot & 1;
    }

    // One more signal of a vector lane; what all of them have sent is delivered to `slots`.
    void collect(int scope, int32_t slot, int32_t event, uint32_t slots) {
        Collected& collected = collected_[scope - 1][event];
        ++collected.sent[slot];
        uint32_t by_all = ~0u;
        for (int lane = kVectorLane0; lane < kLaneSlots; ++lane) {
            if (has(lane)) by_all = std::min(by_all, collected.sent[lane]);
        }
        for (; collected.delivered < by_all; ++collected.delivered) deliver(slots, event);
    }

    // Waits until ready(); `helpers` are the lanes that can bring that about.
    template <class Ready>
    bool await(Lock& lock, int32_t slot, uint32_t helpers, const char* what, Ready ready,
               std::string& problem) {
        if (ready()) return true;
        spin(lock);
        Waiter self{what, ready};
        if (helpers != kAnybody) waiting_[slot] = &self;
        bool done = false;
        while (!(done = ready())) {
            if (cancelled_.load(std::memory_order_relaxed) != 0) {
                problem = "given up, because the run is over";
            } else if (helpers != kAnybody && (helpers & lanes_ & ~finished_) == 0) {
                problem = "waits for ever: " + names(helpers & lanes_) + " has returned";
            } else if (is_deadlock()) {
                problem = "deadlock, every lane waits: " + describe_waiting();
            } else {
                changed_.wait_for(lock, std::chrono::milliseconds(20));
                continue;
            }
            break;
        }
        waiting_[slot] = nullptr;
        return done;
    }

    // The other lane is often about to do it.
    void spin(Lock& lock) {
        uint32_t seen = changes_.load(std::memory_order_acquire);
        lock.unlock();
        for (int i = 0; i < kSpins + kYields; ++i) {
            if (changes_.load(std::memory_order_acquire) != seen) break;
            if (i < kSpins) cpu_relax();
            else sched_yield();
        }
        lock.lock();
    }

    bool is_deadlock() const {
        for (int slot = 0; slot < kLaneSlots; ++slot) {
            if ((lanes_ & ~finished_) >> slot & 1) {
                if (waiting_[slot] == nullptr || waiting_[slot]->ready()) return false;
            }
        }
        return true;
    }

    std::string describe_waiting() const {
        std::string text;
        for (int slot = 0; slot < kLaneSlots; ++slot) {
            if (waiting_[slot] == nullptr) continue;
            text +=
                std::string(text.empty() ? "" : "; ") + lane_name(slot) + " in " + waiting_[slot]->what;
        }
        return text;
    }

    static std::string names(uint32_t slots) {
        std::string text;
        for (int slot = 0; slot < kLaneSlots; ++slot) {
            if (slots >> slot & 1) text += std::string(text.empty() ? "" : " and ") + lane_name(slot);
        }
        return text.empty() ? "nobody else" : text;
    }

    struct Collected {
        uint32_t sent[kLaneSlots] = {};
        uint32_t delivered = 0;
    };

    const uint32_t lanes_;
    const bool alone_;
    const std::atomic<int32_t>& cancelled_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::atomic<uint32_t> changes_{0};
    uint32_t finished_ = 0;
    Waiter* waiting_[kLaneSlots] = {};
    std::deque<Pipe> pipes_;
    uint32_t pending_[kLaneSlots][kEvents] = {};
    Collected collected_[2][kEvents];  // scopes 1 and 2
};

}  // namespace pypto

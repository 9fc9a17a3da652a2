// Tasks that may run now, in the order in which they became ready, and the slots that wait for reuse.
#pragma once

#include <sched.h>

#include <atomic>

#include "task.h"

namespace pypto {

inline void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

class SpinLock {
public:
    void lock() {
        for (int tries = 0; held_.exchange(true, std::memory_order_acquire);) {
            while (held_.load(std::memory_order_relaxed)) {
                cpu_relax();
                if (++tries % 64 == 0) sched_yield();  // the holder may have lost its core
            }
        }
    }
    void unlock() { held_.store(false, std::memory_order_release); }

private:
    std::atomic<bool> held_{false};
};

// Some blocks of a task, claimed by one thread.
struct Claim {
    Task* task = nullptr;
    int32_t first = 0;
    int32_t count = 0;
};

class ReadyQueue {
public:
    void push(Task* task) {
        task->next = nullptr;
        lock_.lock();
        if (tail_ == nullptr) head_ = task;
        else tail_->next = task;
        tail_ = task;
        size_.store(size_.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
        lock_.unlock();
    }

    // A share of the first task's blocks; all of them when they must start together.
    Claim claim(int32_t threads) {
        Claim claim;
        if (size_.load(std::memory_order_relaxed) == 0) return claim;
        lock_.lock();
        Task* task = head_;
        if (task != nullptr) {
            int32_t left = task->block_num - task->next_block;
            int32_t share = left / (4 * threads);
            claim = Claim{task, task->next_block, task->gang ? left : share > 1 ? share : 1};
            task->next_block += claim.count;
            if (claim.count == left) {
                head_ = task->next;
                if (head_ == nullptr) tail_ = nullptr;
                size_.store(size_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
            }
        }
        lock_.unlock();
        return claim;
    }

    bool empty() const { return size_.load(std::memory_order_seq_cst) == 0; }

private:
    SpinLock lock_;
    Task* head_ = nullptr;
    Task* tail_ = nullptr;
    std::atomic<int64_t> size_{0};
};

// Many threads give slots back, one takes all of them.
class FreeSlots {
public:
    void push(Task* task) {
        Task* head = head_.load(std::memory_order_relaxed);
        do {
            task->next = head;
        } while (
            !head_.compare_exchange_weak(head, task, std::memory_order_release, std::memory_order_relaxed));
    }
    Task* take_all() {
        if (head_.load(std::memory_order_relaxed) == nullptr) return nullptr;
        return head_.exchange(nullptr, std::memory_order_acquire);
    }

private:
    std::atomic<Task*> head_{nullptr};
};

}  // namespace pypto

// The worker threads of the process, shared by all runs.
//
// A worker attaches to a run that has more ready tasks than threads, works until the run is dry, spins for a
// moment and detaches. Correctness never rests on a worker waking up: the thread that called the program runs
// its tasks as well.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "buffers.h"
#include "interrupt.h"
#include "lanes.h"

namespace pypto {

class Run;
struct RunOptions;

class Engine {
public:
    // Made on first use, never destroyed: detached threads may outlive the library's static objects. A child
    // of fork() has none of the threads and starts over.
    static Engine& instance() {
        Engine* engine = current_.load(std::memory_order_acquire);
        if (engine != nullptr) return *engine;
        static const int registered = pthread_atfork(nullptr, nullptr, [] { current_.store(nullptr); });
        (void)registered;
        Engine* made = new Engine;
        if (!current_.compare_exchange_strong(engine, made)) {
            delete made;
            return *engine;
        }
        return *made;
    }

    // `use`: from Interrupts::arm, when SIGINT ends the run; a number of the caller for `cancel`; or 0.
    Run* acquire_run(const RunOptions& options, uint64_t use);
    void release_run(Run* run);

    // Called after a task was made ready: wakes a worker when there is one asleep and none looking for work.
    void wake_for(Run& run);

    Interrupts& interrupts() { return interrupts_; }
    BufferPool& buffers() { return buffers_; }
    GangThreads& gangs() { return gangs_; }

    // Ends the runs of a number that the caller chose, not smaller than kOwnUse. Returns when they are over, or
    // after some seconds.
    void cancel(uint64_t use);
    static constexpr uint64_t kOwnUse = uint64_t{1} << 63;

    // Ends all threads, and the runs that are still active.
    void stop();

private:
    bool interrupt(uint64_t use, bool first);
    void end_active_runs(std::unique_lock<std::mutex>& lock);
    void worker_main();
    void watchdog_main();
    Run* pick();

    BufferPool buffers_;
    GangThreads gangs_;
    Interrupts interrupts_{[this](uint64_t use, bool first) { return interrupt(use, first); }};
    Run* interruptible_ = nullptr;
    uint64_t interruptible_use_ = 0;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::atomic<int32_t> asleep_{0};
    bool stopping_ = false;
    std::vector<std::thread> workers_;
    std::thread watchdog_;
    std::condition_variable watchdog_wake_;
    std::vector<Run*> active_;
    std::vector<Run*> watched_;
    std::vector<std::unique_ptr<Run>> all_runs_;
    std::vector<Run*> idle_runs_;
    size_t next_run_ = 0;

    static inline std::atomic<Engine*> current_{nullptr};
};

}  // namespace pypto

#include "engine.h"

#include "run.h"

namespace pypto {

Run* Engine::acquire_run(const RunOptions& options, uint64_t use) {
    std::lock_guard<std::mutex> guard(mutex_);
    if (idle_runs_.empty()) {
        all_runs_.push_back(std::make_unique<Run>(*this));
        idle_runs_.push_back(all_runs_.back().get());
    }
    Run* run = idle_runs_.back();
    idle_runs_.pop_back();
    run->prepare(options);
    run->use = use;
    if (use != 0 && use < kOwnUse) {
        interruptible_ = run;
        interruptible_use_ = use;
        if (interrupts_.raised(use)) interrupts_.retry();
    }
    active_.push_back(run);
    if (options.stall_seconds > 0) {
        watched_.push_back(run);
        if (!watchdog_.joinable()) watchdog_ = std::thread([this] { watchdog_main(); });
        watchdog_wake_.notify_one();
    }
    while (workers_.size() + 1 < static_cast<size_t>(options.workers) && !stopping_) {
        try {
            workers_.emplace_back([this] { worker_main(); });
        } catch (const std::system_error&) {
            break;  // fewer helpers: slower, not wrong
        }
    }
    return run;
}

void Engine::release_run(Run* run) {
    std::lock_guard<std::mutex> guard(mutex_);
    if (run == interruptible_) {
        interrupts_.disarm();
        interruptible_ = nullptr;
    }
    active_.erase(std::find(active_.begin(), active_.end(), run));
    watched_.erase(std::remove(watched_.begin(), watched_.end(), run), watched_.end());
    idle_runs_.push_back(run);
}

bool Engine::interrupt(uint64_t use, bool first) {
    std::lock_guard<std::mutex> guard(mutex_);
    if (interruptible_ == nullptr || interruptible_use_ != use) return false;
    if (first) interruptible_->interrupt();
    else Lane::evict(interruptible_);
    return true;
}

void Engine::cancel(uint64_t use) {
    for (int tries = 0; tries < 1000; ++tries) {
        {
            std::lock_guard<std::mutex> guard(mutex_);
            bool found = false;
            for (Run* run : active_) {
                if (run->use != use) continue;
                found = true;
                if (!run->was_interrupted()) run->interrupt();
                else Lane::evict(run);
            }
            if (!found) return;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

// Runs of threads that the process does not wait for.
void Engine::end_active_runs(std::unique_lock<std::mutex>& lock) {
    for (Run* run : active_) run->fail("the process ends");
    for (int tries = 0; !active_.empty() && tries < 400; ++tries) {
        for (Run* run : active_) Lane::evict(run);
        lock.unlock();
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        lock.lock();
    }
}

void Engine::watchdog_main() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stopping_) {
        if (watched_.empty()) watchdog_wake_.wait(lock);
        auto tick = std::chrono::steady_clock::now() + std::chrono::seconds(1);
        while (!stopping_ && watchdog_wake_.wait_until(lock, tick) != std::cv_status::timeout) {
        }
        for (Run* run : watched_) run->watch();
    }
}

void Engine::wake_for(Run& run) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (asleep_.load(std::memory_order_relaxed) == 0 || run.spinning.load(std::memory_order_relaxed) > 0 ||
        run.attached.load(std::memory_order_relaxed) >= run.helpers.load(std::memory_order_relaxed)) {
        return;
    }
    std::lock_guard<std::mutex> guard(mutex_);
    wake_.notify_one();
}

Run* Engine::pick() {
    for (size_t i = 0; i < active_.size(); ++i) {
        Run* run = active_[(next_run_ + i) % active_.size()];
        if (run->has_ready() && run->attached.load() < run->helpers.load()) {
            next_run_ = (next_run_ + i + 1) % active_.size();
            return run;
        }
    }
    return nullptr;
}

void Engine::worker_main() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stopping_) {
        asleep_.fetch_add(1, std::memory_order_seq_cst);
        Run* run = pick();
        if (run == nullptr) wake_.wait(lock);
        asleep_.fetch_sub(1, std::memory_order_seq_cst);
        if (run == nullptr) continue;
        run->attached.fetch_add(1);
        lock.unlock();
        run->work_until_dry();
        run->attached.fetch_sub(1);
        lock.lock();
    }
}

void Engine::stop() {
    std::vector<std::thread> ending;
    interrupts_.stop();
    {
        std::unique_lock<std::mutex> lock(mutex_);
        end_active_runs(lock);
        stopping_ = true;
        ending.swap(workers_);
        wake_.notify_all();
        if (watchdog_.joinable()) ending.push_back(std::move(watchdog_));
        watchdog_wake_.notify_all();
    }
    for (auto& thread : ending) thread.join();
    gangs_.stop();
    std::lock_guard<std::mutex> guard(mutex_);
    stopping_ = false;
}

}  // namespace pypto

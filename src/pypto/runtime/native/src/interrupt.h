// Ends a run that a person interrupts (Ctrl-C) while it is called from the program's main thread.
//
// While such a run is active, SIGINT does what it did before and also wakes a thread, the only place that
// touches the run: the handler itself may be executing anywhere. The run becomes fatal, which ends everything
// that waits or loops; what is inside a kernel by then is taken out of it shortly after.
#pragma once

#include <semaphore.h>
#include <signal.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <thread>

#include "crash_guard.h"

namespace pypto {

class Interrupts {
public:
    // `interrupt(first)` is called on the watching thread: once, and then again and again until it returns false.
    explicit Interrupts(std::function<bool(uint64_t use, bool first)> interrupt)
        : interrupt_(std::move(interrupt)) {
        sem_init(&raised_, 0, 0);
    }

    // From now on SIGINT interrupts. Returns the number of this use, never 0. Only one run at a time asks for it,
    // that of the main thread, some time before it begins: what arrives in between is seen by `raised`.
    uint64_t arm() {
        if (!watcher_.joinable()) watcher_ = std::thread([this] { watch(); });
        uint64_t use = use_.fetch_add(1) + 1;
        struct sigaction action = {};
        action.sa_sigaction = &Interrupts::handle;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
        if (armed().exchange(this) == nullptr) sigaction(SIGINT, &action, &previous_);
        return use;
    }

    void disarm() {
        if (armed().load() == nullptr) return;
        sigaction(SIGINT, &previous_, nullptr);
        armed().store(nullptr);
    }

    // Whether SIGINT has come since that use was armed.
    bool raised(uint64_t use) const { return raised_in_.load() == use; }

    // Calls `interrupt` if the last SIGINT was not handled because its run had not begun.
    void retry() { sem_post(&raised_); }

    void stop() {
        if (!watcher_.joinable()) return;
        stopping_.store(true);
        sem_post(&raised_);
        watcher_.join();
        stopping_.store(false);
    }

private:
    static std::atomic<Interrupts*>& armed() {
        static std::atomic<Interrupts*> current{nullptr};
        return current;
    }

    static void handle(int number, siginfo_t* info, void* context) {
        int saved = errno;
        if (Interrupts* self = armed().load()) {
            self->raised_in_.store(self->use_.load());
            sem_post(&self->raised_);
        }
        CrashGuard::pass_on(previous_, number, info, context);
        errno = saved;
    }

    void watch() {
        while (!stopping_.load()) {
            if (sem_wait(&raised_) != 0) continue;
            uint64_t use = raised_in_.load();
            for (bool first = true; !stopping_.load() && interrupt_(use, first); first = false) {
                timespec pause{0, first ? kGraceNs : kRetryNs};
                nanosleep(&pause, nullptr);
            }
        }
    }

    static constexpr long kGraceNs = 200'000'000;  // for kernels to return by themselves
    static constexpr long kRetryNs = 5'000'000;

    std::function<bool(uint64_t, bool)> interrupt_;
    sem_t raised_;
    std::atomic<uint64_t> use_{0};
    std::atomic<uint64_t> raised_in_{0};
    std::atomic<bool> stopping_{false};
    std::thread watcher_;
    static inline struct sigaction previous_ = {};
};

}  // namespace pypto

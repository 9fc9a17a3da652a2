// Turns a crash inside a kernel (a wild access, a division by zero, a failed assertion) into a failed task, and
// takes threads out of kernels that do not return.
//
// A thread that enters a kernel says where to go on when the kernel dies. A signal on any other thread, or
// outside a kernel, goes to whoever handled it before.
#pragma once

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <ucontext.h>

#include <memory>
#include <mutex>
#include <new>

namespace pypto {

// Where handlers of this thread run, so that a kernel which has used up its stack can be reported as well.
class SignalStack {
public:
    SignalStack() {
        stack_t present;
        if (sigaltstack(nullptr, &present) != 0 || (present.ss_flags & SS_DISABLE) == 0) return;
        memory_.reset(new (std::nothrow) char[kBytes]);
        stack_t mine = {};
        mine.ss_sp = memory_.get();
        mine.ss_size = kBytes;
        if (memory_ != nullptr) sigaltstack(&mine, nullptr);
    }
    ~SignalStack() {
        stack_t none = {};
        none.ss_flags = SS_DISABLE;
        if (memory_ != nullptr) sigaltstack(&none, nullptr);
    }

private:
    static constexpr size_t kBytes = 64 << 10;
    std::unique_ptr<char[]> memory_;
};

class CrashGuard {
public:
    // Installs the handlers, once per process.
    static void install() {
        static std::once_flag once;
        std::call_once(once, [] {
            struct sigaction action = {};
            action.sa_sigaction = &CrashGuard::handle;
            // Not deferred: the handler leaves by a jump, so the signal would stay blocked.
            action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
            for (int i = 0; i < kSignals; ++i) sigaction(kHandled[i].number, &action, &previous_[i]);
            action.sa_sigaction = &CrashGuard::handle_eviction;
            sigaction(kEviction, &action, &before_eviction_);
        });
    }

    // Machine code of a kernel's library.
    struct Code {
        uintptr_t begin = 0;
        uintptr_t end = 0;
    };

    // The code of the kernel that this thread runs.
    static Code& code() {
        static thread_local Code range;
        return range;
    }

    // Sent to a thread, makes it leave its kernel. It stays when it is in code that the kernel has called, which
    // may hold a lock: send it again later. By default nobody notices this signal.
    static constexpr int kEviction = SIGURG;

    // Where a crash of this thread continues; null outside kernels.
    static jmp_buf*& landing() {
        static thread_local jmp_buf* place = nullptr;
        return place;
    }

    // What the value that setjmp returned means.
    static const char* describe(int jumped) {
        for (const Handled& signal : kHandled) {
            if (jumped == kCrashed + signal.number) return signal.text;
        }
        return jumped == kCrashed + kEviction ? "given up, because the run is over" : "crash";
    }

    static constexpr int kCrashed = 1000;  // jump values above it are signals

private:
    struct Handled {
        int number;
        const char* text;
    };
    static constexpr int kSignals = 5;
    static constexpr Handled kHandled[kSignals] = {
        {SIGSEGV, "crash: access to memory that is not there, or no stack left"},
        {SIGBUS, "crash: access to memory that cannot be read"},
        {SIGFPE, "crash: integer division by zero"},
        {SIGABRT, "aborted, as by a failed assertion"},
        {SIGILL, "crash: instruction that this CPU does not have"},
    };

    static void handle(int number, siginfo_t* info, void* context) {
        jmp_buf* place = landing();
        if (place != nullptr) {
            landing() = nullptr;
            longjmp(*place, kCrashed + number);
        }
        for (int i = 0; i < kSignals; ++i) {
            if (kHandled[i].number == number) pass_on(previous_[i], number, info, context);
        }
    }

    static void handle_eviction(int number, siginfo_t* info, void* context) {
        jmp_buf* place = landing();
        uintptr_t at = program_counter(context);
        if (place != nullptr && info->si_code == SI_TKILL && code().begin <= at && at < code().end) {
            landing() = nullptr;
            longjmp(*place, kCrashed + number);
        }
        if (before_eviction_.sa_handler != SIG_DFL) pass_on(before_eviction_, number, info, context);
    }

    // Where the interrupted thread is; 0 on machines that this does not know.
    static uintptr_t program_counter(void* context) {
#if defined(__x86_64__) && defined(__linux__)
        return static_cast<uintptr_t>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__) && defined(__linux__)
        return static_cast<uintptr_t>(static_cast<ucontext_t*>(context)->uc_mcontext.pc);
#else
        (void)context;
        return 0;
#endif
    }

public:
    static void pass_on(const struct sigaction& previous, int number, siginfo_t* info, void* context) {
        if (previous.sa_flags & SA_SIGINFO) {
            previous.sa_sigaction(number, info, context);
        } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
            previous.sa_handler(number);
        } else {
            sigaction(number, &previous, nullptr);  // the faulting instruction runs again and meets it
        }
    }

private:
    static inline struct sigaction before_eviction_ = {};
    static inline struct sigaction previous_[kSignals] = {};
};

}  // namespace pypto

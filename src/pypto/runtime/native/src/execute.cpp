// The executing half of a run: ready tasks, their blocks and lanes, and what happens when they are done.
#include "run.h"

namespace pypto {

namespace {

constexpr int kSpins = 400;
constexpr int kYields = 20;

bool never() { return false; }

}  // namespace

void Run::prepare(const RunOptions& options) {
    options_ = options;
    helpers.store(options.workers - 1, std::memory_order_relaxed);
    submitted_.store(0, std::memory_order_relaxed);
    completed_.store(0, std::memory_order_relaxed);
    stalled_seconds_ = 0;
    error_.clear();
    interrupted_.store(false, std::memory_order_relaxed);
    fatal_.store(0, std::memory_order_release);
}

std::string Run::execute(const Program& program, std::vector<ChipTensor>& tensors, const uint64_t* scalars,
                         int32_t scalar_count) {
    program_ = &program;
    scope_depth_ = manual_depth_ = manual_scope_ = 0;
    next_manual_scope_ = 1;
    Run* outer = current();
    current() = this;
    if (options_.trace != nullptr) options_.trace->begin_scope(false);
    ChipTaskArgs args(tensors.data(), static_cast<int32_t>(tensors.size()), scalars, scalar_count);
    try {
        int32_t given = static_cast<int32_t>(tensors.size()) + scalar_count;
        int32_t expected = program.config == nullptr ? given : program.config(args).expected_arg_count;
        if (expected != given) {
            fail("the orchestration expects %d arguments, got %d", expected, given);
        } else {
            program.entry(args);
        }
    } catch (const std::exception& error) {
        fail("exception in the orchestration: %s", error.what());
    } catch (...) {
        fail("exception in the orchestration");
    }
    wait_for([this] {
        return completed_.load(std::memory_order_seq_cst) == submitted_.load(std::memory_order_relaxed);
    });
    current() = outer;
    map_.clear();
    std::lock_guard<std::mutex> guard(error_mutex_);
    return error_;
}

void Run::work_until_dry() {
    for (;;) {
        Claim claim = ready_.claim(threads());
        if (claim.task != nullptr) {
            if (!ready_.empty()) engine_.wake_for(*this);
            run_claim(claim, never);
            continue;
        }
        spinning.fetch_add(1, std::memory_order_seq_cst);
        for (int i = 0; i < kSpins + kYields && ready_.empty(); ++i) {
            if (i < kSpins) cpu_relax();
            else sched_yield();
        }
        spinning.fetch_sub(1, std::memory_order_seq_cst);
        // A task pushed while this thread counted as looking for work woke nobody else: look once more.
        if (ready_.empty()) return;
    }
}

template <class Stop>
void Run::run_claim(const Claim& claim, Stop stop) {
    Task& task = *claim.task;
    if (task.simple()) return run_chain(&task, stop);
    bool wanted = !is_fatal() && (task.predicate.element == nullptr || task.predicate.holds());
    if (wanted && claim.first == 0 && options_.trace != nullptr) options_.trace->dump(task, false);
    if (wanted && task.gang) {
        run_gang(task);
    } else if (wanted) {
        for (int32_t i = 0; i < claim.count; ++i) run_block(task, claim.first + i);
    }
    if (task.blocks_running.fetch_sub(claim.count, std::memory_order_acq_rel) == claim.count) {
        if (wanted && options_.trace != nullptr) options_.trace->dump(task, true);
        run_chain(finish(task), stop);
    }
}

// Runs `task` and then one successor after the other, as far as they are simple and nobody needs this thread.
template <class Stop>
void Run::run_chain(Task* task, Stop stop) {
    bool first = true;
    while (task != nullptr) {
        if (!task->simple() || (!first && stop())) return make_ready(task);
        first = false;
        bool wanted =
            task->lane_count != 0 && (task->predicate.element == nullptr || task->predicate.holds());
        if (wanted && options_.trace != nullptr) options_.trace->dump(*task, false);
        if (wanted) run_lane(*task, 0, 0, nullptr);
        if (wanted && options_.trace != nullptr) options_.trace->dump(*task, true);
        task = finish(*task);
    }
}

void Run::run_gang(Task& task) {
    uint32_t lanes = task.lane_count;
    if (lanes == 0) return;
    LaneGroup group(task, 0, task.block_num, fatal_);
    try {
        engine_.gangs().run(static_cast<uint32_t>(task.block_num) * lanes, [&](uint32_t i) {
            run_lane(task, i % lanes, static_cast<int32_t>(i / lanes), &group);
        });
    } catch (const std::system_error& error) {
        fail("kernel '%s': no thread for every block that must start together: %s", task.lanes[0]->name,
             error.what());
    }
}

void Run::run_block(Task& task, int32_t block) {
    if (task.lane_count == 1) return run_lane(task, 0, block, nullptr);
    if (task.lane_count == 0) return;
    LaneGroup group(task, block, 1, fatal_);
    try {
        engine_.gangs().run(task.lane_count, [&](uint32_t lane) { run_lane(task, lane, block, &group); });
    } catch (const std::system_error& error) {
        fail("kernel '%s': no thread for its second lane: %s", task.lanes[0]->name, error.what());
    }
}

// `group`: the lanes that run beside this one; null for a lane by itself.
void Run::run_lane(Task& task, uint32_t lane, int32_t block, LaneGroup* group) {
    if (is_fatal()) {
        if (group != nullptr) group->finish(block, task.slots[lane]);
        return;
    }
    const Kernel& kernel = *task.lanes[lane];
    int64_t start = options_.trace != nullptr ? now_ns() : 0;
    Lane& thread = Lane::of_this_thread();
    if (!thread.call(this, task, lane, block, group, options_.checked != 0, fatal_)) {
        fail("kernel '%s' (id %d), block %d of %d%s%s: %s", kernel.name, kernel.func_id, block, task.block_num,
             task.lane_count > 1 ? ", lane " : "", task.lane_count > 1 ? lane_name(task.slots[lane]) : "",
             thread.failure().c_str());
    }
    if (group != nullptr) group->finish(block, task.slots[lane]);
    if (options_.trace != nullptr) {
        options_.trace->add(TraceBlock{task.serial, block, static_cast<int32_t>(lane), start, now_ns(),
                                       reinterpret_cast<uint64_t>(&thread)});
    }
}

void Run::make_ready(Task* task) {
    ready_.push(task);
    engine_.wake_for(*this);
}

// Releases whoever waited for `task` and gives its slot back. Returns a successor for this thread to run
// next.
Task* Run::finish(Task& task) {
    Edge* edge = task.successors.exchange(closed_list(), std::memory_order_acq_rel);
    release_holds(task);
    Task* mine = nullptr;
    while (edge != nullptr) {
        Task* successor = edge->successor;
        edge = edge->next;  // before the successor may run and reuse its edges
        if (successor->pending.fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
        if (mine == nullptr && successor->simple()) mine = successor;
        else make_ready(successor);
    }
    freed_.push(&task);
    completed_.fetch_add(1, std::memory_order_seq_cst);
    if (caller_waiting_.load(std::memory_order_seq_cst) != 0) {
        std::lock_guard<std::mutex> guard(caller_mutex_);
        caller_wake_.notify_one();
    }
    return mine;
}

// The calling thread works until done() holds.
template <class Done>
void Run::wait_for(Done done) {
    int idle = 0;
    while (!done()) {
        Claim claim = ready_.claim(threads());
        if (claim.task != nullptr) {
            if (!ready_.empty()) engine_.wake_for(*this);
            run_claim(claim, done);
            idle = 0;
        } else if (++idle < kSpins) {
            cpu_relax();
        } else if (idle < kSpins + kYields) {
            sched_yield();
        } else {
            sleep_until_progress(done);
        }
    }
}

template <class Done>
void Run::sleep_until_progress(Done done) {
    std::unique_lock<std::mutex> lock(caller_mutex_);
    caller_waiting_.store(1, std::memory_order_seq_cst);
    if (!done() && ready_.empty()) caller_wake_.wait_for(lock, std::chrono::seconds(1));
    caller_waiting_.store(0, std::memory_order_relaxed);
}

void Run::interrupt() {
    interrupted_.store(true, std::memory_order_relaxed);
    fail("interrupted");
}

// A kernel cannot be stopped, so the person is told at once; the run ends when its kernels return.
void Run::watch() {
    uint64_t completed = completed_.load(std::memory_order_relaxed);
    uint64_t submitted = submitted_.load(std::memory_order_relaxed);
    bool stalled = completed == watched_completed_ && completed < submitted;
    watched_completed_ = completed;
    stalled_seconds_ = stalled ? stalled_seconds_ + 1 : 0;
    if (stalled_seconds_ != options_.stall_seconds) return;
    fail("no progress for %d s with %llu tasks unfinished; running: %s", options_.stall_seconds,
         static_cast<unsigned long long>(submitted - completed), Lane::describe_running(this).c_str());
    fprintf(stderr, "pypto: no progress for %d s; running: %s\n", options_.stall_seconds,
            Lane::describe_running(this).c_str());
}

}  // namespace pypto

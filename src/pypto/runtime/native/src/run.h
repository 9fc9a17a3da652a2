// One execution of a program: the calling thread submits tasks, workers and the calling thread run them.
//
// Edges follow from the tensors that tasks name (`infer_edges`), so results equal a serial execution in
// program order: read after write, write after write for INOUT, write after read. OUTPUT_EXISTING writers of
// one buffer are not ordered among themselves: that is how iterations of a parallel loop write parts of one
// result.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <string>
#include <vector>

#include "dependency_map.h"
#include "engine.h"
#include "lanes.h"
#include "ready_queue.h"
#include "trace.h"

namespace pypto {

struct Program {
    void (*entry)(const ChipTaskArgs&) = nullptr;
    PTO2OrchestrationConfig (*config)(const ChipTaskArgs&) = nullptr;
    std::vector<std::unique_ptr<Kernel>> kernels;  // by func id, with gaps
    uint64_t stack_bytes = 0;  // what the orchestration may need; 0 when the caller's stack is enough

    const Kernel* find(int32_t id) const {
        return id >= 0 && static_cast<size_t>(id) < kernels.size() ? kernels[id].get() : nullptr;
    }
};

// Layout shared with the Python side.
struct RunOptions {
    int32_t workers;      // threads that run tasks, the caller included
    int32_t task_window;  // tasks in flight
    int32_t clusters;
    int32_t aivs;
    int32_t checked;        // kernels verify accesses, fresh buffers are poisoned
    int32_t stall_seconds;  // without progress for so long the run is fatal; 0: never
    Trace* trace;
};

class Run {
public:
    explicit Run(Engine& engine) : engine_(engine) {}

    // The run of the calling thread; null outside a program.
    static Run*& current() {
        static thread_local Run* run = nullptr;
        return run;
    }

    // Before the run is active, under the engine's lock.
    void prepare(const RunOptions& options);

    // Runs the program. An empty text means success, else it is the first error.
    std::string execute(const Program& program, std::vector<ChipTensor>& tensors, const uint64_t* scalars,
                        int32_t scalar_count);

    // The task API, called by orchestration code.
    void submit(const MixedKernels* kernels, const CoreTaskArgs& args, TaskOutputTensors* outputs);
    void allocate(const TensorCreateInfo* const* infos, uint32_t n, TaskOutputTensors* outputs);
    void* await_element(const ChipTensor& t, uint32_t ndims, const uint32_t* indices, uint32_t bytes,
                        bool write);
    void scope_begin(PTO2ScopeMode mode);
    void scope_end();
    __attribute__((format(printf, 2, 3))) void fail(const char* format, ...);
    uint64_t use = 0;  // names this execution for who may end it; 0: nobody
    void interrupt();  // fails the run on behalf of a person
    bool was_interrupted() const { return interrupted_.load(std::memory_order_relaxed); }
    bool is_fatal() const { return fatal_.load(std::memory_order_acquire) != 0; }
    const RunOptions& options() const { return options_; }

    // Called once a second while the run is active and asks for it, under the engine's lock.
    void watch();

    // For workers.
    void work_until_dry();
    bool has_ready() const { return !ready_.empty(); }
    std::atomic<int32_t> helpers{0};  // workers that may attach
    std::atomic<int32_t> attached{0};
    std::atomic<int32_t> spinning{0};

private:
    // submission
    bool set_lanes(Task& task, const MixedKernels* kernels);
    bool set_launch(Task& task, const LaunchSpec& launch);
    bool set_payload(Task& task, const CoreTaskArgs& args, TaskOutputTensors* outputs);
    bool set_predicate(Task& task, const CoreTaskPredicate& predicate);
    const void* element_of(const ChipTensor& t, uint32_t ndims, const uint32_t* indices, ChipTensor* window);
    bool add_explicit_deps(Task& task, const CoreTaskArgs& args);
    void infer_edges(Task& task, const CoreTaskArgs& args);
    void look_up(Task& task, const ChipTensor& t, const Region& region, TensorArgType tag);
    void record(Task& task, const ChipTensor& t, const Region& region, TensorArgType tag);
    void add_owner_edge(Task& task, const ChipTensor& t);
    bool add_edge(Task& task, Task* from, uint64_t serial, bool inferred);
    Task* task_of(PTO2TaskId id, uint64_t* serial) const;
    void publish(Task& task);
    Task* acquire_slot();
    void give_up(Task* task);
    bool make_tensor(const TensorCreateInfo& info, PTO2TaskId owner, TaskOutputTensors* outputs);
    static void hold(Task& task, const ChipTensor& t);
    void release_holds(Task& task);

    // execution
    template <class Stop>
    void run_claim(const Claim& claim, Stop stop);
    template <class Stop>
    void run_chain(Task* task, Stop stop);
    void run_gang(Task& task);
    void run_block(Task& task, int32_t block);
    void run_lane(Task& task, uint32_t lane, int32_t block, LaneGroup* group);
    void make_ready(Task* task);
    Task* finish(Task& task);
    template <class Done>
    void wait_for(Done done);
    template <class Done>
    void sleep_until_progress(Done done);

    static constexpr uint32_t kIndexBits = 24;
    static constexpr uint32_t kFinishedIndex =
        (1u << kIndexBits) - 1;  // ids of allocations, which are no tasks
    static uint64_t raw_id(uint64_t serial, uint32_t index) { return serial << kIndexBits | index; }
    int32_t threads() const { return helpers.load(std::memory_order_relaxed) + 1; }

    Engine& engine_;
    const Program* program_ = nullptr;
    RunOptions options_{};
    std::vector<std::unique_ptr<Task[]>> chunks_;
    std::vector<Task*> slots_;
    Task* free_ = nullptr;  // taken from freed_ by the calling thread
    FreeSlots freed_;
    ReadyQueue ready_;
    DependencyMap map_;
    std::vector<Task*> predecessors_;
    std::vector<Region> regions_;
    uint64_t next_serial_ = 1;
    std::atomic<uint64_t> submitted_{0};  // written by the calling thread only
    std::atomic<uint64_t> completed_{0};
    uint64_t watched_completed_ = 0;  // what the watchdog saw last
    int32_t stalled_seconds_ = 0;

    uint32_t scope_depth_ = 0;
    uint32_t manual_depth_ = 0;  // scopes inside the outermost manual one, itself included
    uint32_t manual_scope_ = 0;
    uint32_t next_manual_scope_ = 1;

    std::atomic<bool> interrupted_{false};
    std::atomic<int32_t> fatal_{0};  // kernels look at it while they wait
    std::mutex error_mutex_;
    std::string error_;

    std::atomic<int32_t> caller_waiting_{0};
    std::mutex caller_mutex_;
    std::condition_variable caller_wake_;
};

}  // namespace pypto

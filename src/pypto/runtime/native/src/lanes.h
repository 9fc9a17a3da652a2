// Threads that execute kernels: the per-thread state of a lane, and helper threads for lanes that must run
// together.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "buffers.h"
#include "crash_guard.h"
#include "lane_group.h"

namespace pypto {

// What one thread needs to call kernels: the argument slots, the contexts they point to, and the kernel's
// arena.
class Lane {
public:
    static Lane& of_this_thread() {
        static thread_local Lane lane;
        return lane;
    }

    Lane() {
        CrashGuard::install();
        core_.fail = &Lane::fail;
        core_.lane = this;
        core_.lanes = &kLaneApi;
        std::lock_guard<std::mutex> guard(registry().mutex);
        registry().lanes.push_back(this);
    }
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;
    ~Lane() {
        {
            std::lock_guard<std::mutex> guard(registry().mutex);
            auto& lanes = registry().lanes;
            lanes.erase(std::find(lanes.begin(), lanes.end(), this));
        }
        std::free(workspace_);
    }

    // What threads execute for `run` at this moment, for people.
    static std::string describe_running(const void* run) {
        std::lock_guard<std::mutex> guard(registry().mutex);
        std::string text;
        for (Lane* lane : registry().lanes) {
            const Kernel* kernel = lane->running_.load(std::memory_order_acquire);
            if (kernel == nullptr || lane->run_.load(std::memory_order_relaxed) != run) continue;
            const char* waiting = lane->waiting_.load(std::memory_order_relaxed);
            text += std::string(text.empty() ? "" : ", ") + "'" + kernel->name + "' block " +
                    std::to_string(lane->block_.load(std::memory_order_relaxed)) + " lane " +
                    lane_name(lane->slot_.load(std::memory_order_relaxed)) +
                    (waiting != nullptr ? std::string(" waiting in ") + waiting : "");
        }
        return text.empty() ? "none" : text;
    }

    // Takes the threads out of the kernels that they execute for `run`, as far as that is safe at this moment.
    static void evict(const void* run) {
        std::lock_guard<std::mutex> guard(registry().mutex);
        for (Lane* lane : registry().lanes) {
            if (lane->running_.load(std::memory_order_acquire) == nullptr) continue;
            if (lane->run_.load(std::memory_order_relaxed) == run) {
                pthread_kill(lane->thread_, CrashGuard::kEviction);
            }
        }
    }

    // Runs one block of one lane of `task`, with `group` if others run beside it. False when the kernel
    // failed; failure() says how.
    bool call(const void* run, const Task& task, uint32_t lane, int32_t block, LaneGroup* group, bool checked,
              const std::atomic<int32_t>& cancelled) {
        const Kernel& kernel = *task.lanes[lane];
        int32_t slot = task.slots[lane];
        if (kernel.workspace_bytes > workspace_bytes_ && !grow_workspace(kernel.workspace_bytes))
            return false;
        for (uint32_t i = 0; i < task.tensor_count; ++i)
            args_[i] = reinterpret_cast<int64_t>(&task.tensors[i]);
        for (uint32_t i = 0; i < task.scalar_count; ++i) {
            args_[task.tensor_count + i] = static_cast<int64_t>(task.scalars[i]);
        }
        dispatch_.block_idx = block;
        dispatch_.block_num = task.block_num;
        core_.sub_block_id = slot == kVectorLane1;
        core_.slot = slot;
        core_.checked = checked;
        core_.workspace = workspace_;
        core_.cancelled = reinterpret_cast<const int32_t*>(&cancelled);
        group_ = group;
        cluster_ = group != nullptr ? &group->cluster(block) : nullptr;
        uint32_t present = cluster_ != nullptr ? cluster_->lanes() : 1u << slot;
        core_.cube_lanes = present & 1;
        core_.vector_lanes = __builtin_popcount(present & kVectorLanes);
        args_[PYPTO_DISPATCH_SLOT] = reinterpret_cast<int64_t>(&dispatch_);
        args_[PYPTO_CORE_SLOT] = reinterpret_cast<int64_t>(&core_);
        run_.store(run, std::memory_order_relaxed);
        block_.store(block, std::memory_order_relaxed);
        slot_.store(slot, std::memory_order_relaxed);
        CrashGuard::code() = kernel.code;
        running_.store(&kernel, std::memory_order_release);
        bool succeeded = enter(kernel.entry);
        running_.store(nullptr, std::memory_order_relaxed);
        return succeeded;
    }

    const std::string& failure() const { return failure_; }

private:
    struct Registry {
        std::mutex mutex;
        std::vector<Lane*> lanes;
    };
    static Registry& registry() {
        static Registry* lanes = new Registry;  // threads may end after the library's static objects
        return *lanes;
    }

    bool enter(KernelEntry entry) {
        int jumped = _setjmp(failed_);
        if (jumped != 0) {
            if (jumped > CrashGuard::kCrashed) failure_ = CrashGuard::describe(jumped);
            return false;
        }
        CrashGuard::landing() = &failed_;
        try {
            entry(args_);
            CrashGuard::landing() = nullptr;
            return true;
        } catch (const std::exception& error) {
            failure_ = std::string("exception: ") + error.what();
        } catch (...) {
            failure_ = "exception of an unknown type";
        }
        CrashGuard::landing() = nullptr;
        return false;
    }

    static Lane& of(const PyptoCoreContext* core) { return *static_cast<Lane*>(core->lane); }

    // Kernels hold nothing that needs a destructor, so jumping out of one is safe.
    [[noreturn]] void leave() {
        CrashGuard::landing() = nullptr;
        longjmp(failed_, 1);
    }

    static void fail(const PyptoCoreContext* self, const char* detail) {
        of(self).failure_ = detail;
        of(self).leave();
    }

    // What the lane does with others: `act(lane, problem)` fails by returning nothing (false, null). The jump out
    // of the kernel comes after all that needs a destructor is gone.
    template <class Act>
    static auto together(const PyptoCoreContext* self, const char* detail, Act act) {
        Lane& lane = of(self);
        auto result = lane.attempt(detail, act);
        if (!result) lane.leave();
        return result;
    }

    template <class Act>
    auto attempt(const char* detail, Act act) {
        std::string problem;
        waiting_.store(detail, std::memory_order_relaxed);
        auto result = act(*this, problem);
        waiting_.store(nullptr, std::memory_order_relaxed);
        if (!result) failure_ = std::string(detail) + ": " + problem;
        return result;
    }

    int32_t slot() const { return slot_.load(std::memory_order_relaxed); }
    int32_t block() const { return block_.load(std::memory_order_relaxed); }

    static std::string no_partner() { return "the task has no other lane to exchange tiles with"; }

    static void open_pipe(const PyptoCoreContext* self, int32_t pipe, int32_t directions, uint64_t slot_bytes,
                          int32_t slots, const char*) {
        Cluster* cluster = of(self).cluster_;
        if (cluster != nullptr) cluster->open(pipe, directions, slot_bytes, slots);
    }

    static void* reserve(const PyptoCoreContext* self, int32_t pipe, int32_t to_cube, int32_t vector_lane,
                         uint64_t bytes, const char* detail) {
        return together(self, detail, [&](Lane& lane, std::string& problem) -> void* {
            if (lane.cluster_ == nullptr) return problem = no_partner(), nullptr;
            return lane.cluster_->reserve(lane.slot(), pipe, to_cube != 0, vector_lane, bytes,
                                          self->checked != 0, detail, problem);
        });
    }

    static void push(const PyptoCoreContext* self, int32_t pipe, int32_t to_cube, int32_t vector_lane) {
        of(self).cluster_->push(pipe, to_cube != 0, vector_lane);
    }

    static const void* front(const PyptoCoreContext* self, int32_t pipe, int32_t to_cube, int32_t vector_lane,
                             const char* detail) {
        return together(self, detail, [&](Lane& lane, std::string& problem) -> const void* {
            if (lane.cluster_ == nullptr) return problem = no_partner(), nullptr;
            return lane.cluster_->front(lane.slot(), pipe, to_cube != 0, vector_lane, detail, problem);
        });
    }

    static void pop(const PyptoCoreContext* self, int32_t pipe, int32_t to_cube, int32_t vector_lane) {
        of(self).cluster_->pop(pipe, to_cube != 0, vector_lane);
    }

    // Whether an event concerns this lane. One that does the work of all kinds alone has done what it waits for.
    bool concerns(int32_t kind) const {
        if (group_ == nullptr) return false;
        bool alone = __builtin_popcount(cluster_->lanes()) == 1;
        return alone || kind < 0 || kind == (slot() == kCubeLane ? 1 : 0);
    }

    static void set_event(const PyptoCoreContext* self, int32_t event, int32_t scope, int32_t kind,
                          const char* detail) {
        together(self, detail, [&](Lane& lane, std::string& problem) {
            if (!check_event(event, problem)) return false;
            if (!lane.concerns(kind)) return true;
            if (scope == 0) return lane.group_->signal_kind(lane.block(), lane.slot(), event, problem);
            if (scope == 1) lane.cluster_->signal_vector_lanes(lane.slot(), event);
            else lane.cluster_->signal_other_side(lane.slot(), event);
            return true;
        });
    }

    static void wait_event(const PyptoCoreContext* self, int32_t event, int32_t kind, const char* detail) {
        together(self, detail, [&](Lane& lane, std::string& problem) {
            if (!check_event(event, problem)) return false;
            if (!lane.concerns(kind)) return true;
            return lane.cluster_->wait_event(lane.slot(), event, detail, problem);
        });
    }

    static bool check_event(int32_t event, std::string& problem) {
        if (event >= 0 && event < kEvents) return true;
        problem = "event " + std::to_string(event) + " is not in 0 ... " + std::to_string(kEvents - 1);
        return false;
    }

    static void barrier(const PyptoCoreContext* self, int32_t kinds, int32_t participants, const char* detail) {
        together(self, detail, [&](Lane& lane, std::string& problem) {
            if (lane.group_ != nullptr) {
                return lane.group_->barrier(lane.slot(), static_cast<uint32_t>(kinds), participants, problem);
            }
            if (lane.dispatch_.block_num == 1) return true;
            problem = "all blocks must run at the same time for it; launch them with sync_start=True";
            return false;
        });
    }

    static constexpr PyptoLaneApi kLaneApi = {&Lane::open_pipe, &Lane::reserve,   &Lane::push,
                                              &Lane::front,     &Lane::pop,       &Lane::set_event,
                                              &Lane::wait_event, &Lane::barrier};

    bool grow_workspace(uint64_t bytes) {
        std::free(workspace_);
        workspace_ = nullptr;
        workspace_bytes_ = 0;
        if (posix_memalign(&workspace_, kAlignment, bytes) != 0) {
            workspace_ = nullptr;
            failure_ = "out of memory: the kernel needs an arena of " + std::to_string(bytes) + " bytes";
            return false;
        }
        workspace_bytes_ = bytes;
        return true;
    }

    SignalStack signal_stack_;
    const pthread_t thread_ = pthread_self();
    std::atomic<const Kernel*> running_{nullptr};
    std::atomic<const void*> run_{nullptr};
    std::atomic<int32_t> block_{0};
    std::atomic<int32_t> slot_{0};
    std::atomic<const char*> waiting_{nullptr};
    LaneGroup* group_ = nullptr;  // of the running block; null for a lane by itself
    Cluster* cluster_ = nullptr;
    int64_t args_[PYPTO_KERNEL_SLOTS] = {};
    PyptoDispatchContext dispatch_{};
    PyptoCoreContext core_{};
    void* workspace_ = nullptr;
    uint64_t workspace_bytes_ = 0;
    jmp_buf failed_;
    std::string failure_;
};

// Runs n jobs on n threads that are all alive at once. Threads are made on demand and kept.
class GangThreads {
public:
    // Runs job(0) on the calling thread and job(1) ... job(n - 1) on helpers; returns when all have returned.
    // Throws std::system_error, before any job runs, when the machine gives no more threads.
    void run(uint32_t n, const std::function<void(uint32_t)>& job) {
        Crew crew;
        crew.job = &job;
        crew.left = n - 1;
        std::vector<Helper*> helpers = take(n - 1);
        for (uint32_t i = 1; i < n; ++i) helpers[i - 1]->start(&crew, i);
        job(0);
        std::unique_lock<std::mutex> lock(crew.mutex);
        crew.done.wait(lock, [&] { return crew.left == 0; });
    }

    void stop() {
        std::lock_guard<std::mutex> guard(mutex_);
        for (auto& helper : all_) helper->stop();
        all_.clear();
        idle_.clear();
    }

private:
    struct Crew {
        const std::function<void(uint32_t)>* job = nullptr;
        std::mutex mutex;
        std::condition_variable done;
        uint32_t left = 0;
    };

    class Helper {
    public:
        explicit Helper(GangThreads& owner) : owner_(owner), thread_([this] { main(); }) {}
        void start(Crew* crew, uint32_t place) {
            std::lock_guard<std::mutex> guard(mutex_);
            crew_ = crew;
            place_ = place;
            wake_.notify_one();
        }
        void stop() {
            {
                std::lock_guard<std::mutex> guard(mutex_);
                stopping_ = true;
                wake_.notify_one();
            }
            thread_.join();
        }

    private:
        void main() {
            std::unique_lock<std::mutex> lock(mutex_);
            for (;;) {
                wake_.wait(lock, [this] { return crew_ != nullptr || stopping_; });
                if (crew_ == nullptr) return;
                Crew* crew = crew_;
                crew_ = nullptr;
                uint32_t place = place_;
                lock.unlock();
                (*crew->job)(place);
                owner_.give_back(
                    this);  // before the crew may vanish: idle again even if the next task is at once
                {
                    std::lock_guard<std::mutex> guard(crew->mutex);
                    if (--crew->left == 0) crew->done.notify_one();
                }
                lock.lock();
            }
        }

        GangThreads& owner_;
        std::mutex mutex_;
        std::condition_variable wake_;
        Crew* crew_ = nullptr;
        uint32_t place_ = 0;
        bool stopping_ = false;
        std::thread thread_;
    };

    std::vector<Helper*> take(uint32_t n) {
        std::lock_guard<std::mutex> guard(mutex_);
        while (idle_.size() < n) {
            all_.push_back(std::make_unique<Helper>(*this));
            idle_.push_back(all_.back().get());
        }
        std::vector<Helper*> taken(idle_.end() - n, idle_.end());
        idle_.resize(idle_.size() - n);
        return taken;
    }

    void give_back(Helper* helper) {
        std::lock_guard<std::mutex> guard(mutex_);
        idle_.push_back(helper);
    }

    std::mutex mutex_;
    std::vector<std::unique_ptr<Helper>> all_;
    std::vector<Helper*> idle_;
};

}  // namespace pypto

// The submitting half of a run: from a task description to a node in the graph.
#include "run.h"

namespace pypto {

namespace {

const char* name_of(const Task& task) { return task.lane_count == 0 ? "dummy task" : task.lanes[0]->name; }

}  // namespace

void Run::submit(const MixedKernels* kernels, const CoreTaskArgs& args, TaskOutputTensors* outputs) {
    if (is_fatal()) return;
    // A task that the previous call made ready is left to this thread if it is about to wait; it was not.
    if (!ready_.empty()) engine_.wake_for(*this);
    Task* slot = acquire_slot();
    if (slot == nullptr) return;
    Task& task = *slot;
    task.serial = next_serial_++;
    task.manual_scope = manual_scope_;
    predecessors_.clear();
    outputs->set_task_id(PTO2TaskId{raw_id(task.serial, task.index)});
    if (!set_lanes(task, kernels) || !set_launch(task, args.launch_spec) || !add_explicit_deps(task, args) ||
        !set_payload(task, args, outputs)) {
        outputs->set_task_id(PTO2TaskId::invalid());
        give_up(slot);
        return;
    }
    infer_edges(task, args);
    if (options_.trace != nullptr) options_.trace->submitted(task, args);
    publish(task);
}

bool Run::set_lanes(Task& task, const MixedKernels* kernels) {
    task.lane_count = 0;
    if (kernels == nullptr) return true;
    int32_t ids[3] = {kernels->aic_kernel_id, kernels->aiv0_kernel_id, kernels->aiv1_kernel_id};
    for (int lane = 0; lane < 3; ++lane) {
        if (ids[lane] == INVALID_KERNEL_ID) continue;
        const Kernel* kernel = program_->find(ids[lane]);
        if (kernel == nullptr) {
            fail("submit of an unknown function id %d", ids[lane]);
            return false;
        }
        bool is_only_vector = lane == kVectorLane1 && ids[kVectorLane0] == INVALID_KERNEL_ID;
        task.slots[task.lane_count] = static_cast<int8_t>(is_only_vector ? kVectorLane0 : lane);
        task.lanes[task.lane_count++] = kernel;
    }
    if (task.lane_count == 0) fail("submit of a task without a kernel");
    return task.lane_count > 0;
}

bool Run::set_launch(Task& task, const LaunchSpec& launch) {
    int64_t blocks = launch.block_num();
    if (blocks < 1 || blocks > INT32_MAX) {
        fail("%s: block count %lld is not in 1 ... 2147483647", name_of(task),
             static_cast<long long>(blocks));
        return false;
    }
    bool only_vector = task.lane_count == 1 && task.lanes[0]->core_type == 0;
    int32_t units = only_vector ? options_.aivs : options_.clusters;
    task.block_num = static_cast<int32_t>(blocks);
    task.next_block = 0;
    task.gang = launch.require_sync_start() && blocks > 1;
    if (task.gang && blocks > units) {
        fail("%s: deadlock: %lld blocks must start together, but there are %d %s", name_of(task),
             static_cast<long long>(blocks), units, only_vector ? "vector units" : "clusters");
        return false;
    }
    task.blocks_running.store(task.block_num, std::memory_order_relaxed);
    return true;
}

bool Run::set_payload(Task& task, const CoreTaskArgs& args, TaskOutputTensors* outputs) {
    if (args.has_error) {
        fail("%s: %s", name_of(task), args.error_msg);
        return false;
    }
    uint32_t n = args.tensor_count();
    Task::reserve(task.tensors, task.tensor_capacity, n);
    Task::reserve(task.holds, task.hold_capacity, n + 1);
    task.tensor_count = n;
    for (uint32_t i = 0; i < n; ++i) {
        const ChipTensor* t;
        if (args.tag(i) == TensorArgType::OUTPUT) {
            if (!make_tensor(args.create_info_at(i), outputs->task_id(), outputs)) return false;
            t = &outputs->get_ref(outputs->size() - 1);
        } else {
            t = &args.tensor_at(i);
            if (t->buffer.addr == 0 && t->numel() != 0) {
                fail("%s: argument %u is a tensor without memory", name_of(task), i);
                return false;
            }
        }
        std::memcpy(&task.tensors[i], static_cast<const void*>(t), sizeof(PyptoTensorDescriptor));
        hold(task, *t);
    }
    task.scalar_count = args.scalar_count();
    std::memcpy(task.scalars, args.scalars(), sizeof(uint64_t) * task.scalar_count);
    task.predicate.element = nullptr;
    return args.predicate() == nullptr || set_predicate(task, *args.predicate());
}

bool Run::set_predicate(Task& task, const CoreTaskPredicate& predicate) {
    if (predicate.operand.tensor == nullptr) {
        fail("%s: predicate without a tensor", name_of(task));
        return false;
    }
    const ChipTensor& t = *predicate.operand.tensor;
    task.predicate.element = element_of(t, predicate.operand.ndims, predicate.operand.indices, nullptr);
    if (task.predicate.element == nullptr) return false;
    task.predicate.dtype = t.dtype;
    task.predicate.op = predicate.op;
    task.predicate.target = predicate.target;
    hold(task, t);
    return true;
}

bool Run::add_explicit_deps(Task& task, const CoreTaskArgs& args) {
    for (uint32_t i = 0; i < args.dependency_count(); ++i) {
        uint64_t serial;
        Task* from = task_of(args.dependencies()[i], &serial);
        if (from == nullptr && serial == 0) {
            fail("%s: dependency %u is not a valid task id", name_of(task), i);
            return false;
        }
        if (from != nullptr) add_edge(task, from, serial, false);
    }
    return true;
}

// Null for the id of an allocation, which is done; null with serial 0 for what is no id of this run.
Task* Run::task_of(PTO2TaskId id, uint64_t* serial) const {
    uint64_t index = id.raw & kFinishedIndex;
    *serial = id.is_valid() ? id.raw >> kIndexBits : 0;
    if (*serial >= next_serial_) *serial = 0;
    if (index == kFinishedIndex || *serial == 0) return nullptr;
    if (index < slots_.size()) return slots_[index];
    *serial = 0;
    return nullptr;
}

// The order matters: what a task itself reads and writes is recorded only after all of its look-ups.
void Run::infer_edges(Task& task, const CoreTaskArgs& args) {
    uint32_t n = args.tensor_count();
    regions_.resize(n + 1);
    for (uint32_t i = 0; i < n; ++i) {
        if (args.tag(i) == TensorArgType::OUTPUT) continue;  // found by its owner
        const ChipTensor& t = args.tensor_at(i);
        add_owner_edge(task, t);
        if (t.manual_dep || args.tag(i) == TensorArgType::NO_DEP) continue;
        regions_[i] = region_of(t);
        look_up(task, t, regions_[i], args.tag(i));
    }
    ChipTensor operand;
    if (task.predicate.element != nullptr) {
        const auto& from = args.predicate()->operand;
        element_of(*from.tensor, from.ndims, from.indices, &operand);
        add_owner_edge(task, operand);
        regions_[n] = region_of(operand);
        look_up(task, operand, regions_[n], TensorArgType::INPUT);
        record(task, operand, regions_[n], TensorArgType::INPUT);
    }
    for (uint32_t i = 0; i < n; ++i) {
        TensorArgType tag = args.tag(i);
        if (tag == TensorArgType::OUTPUT || tag == TensorArgType::NO_DEP || args.tensor_at(i).manual_dep)
            continue;
        record(task, args.tensor_at(i), regions_[i], tag);
    }
}

void Run::look_up(Task& task, const ChipTensor& t, const Region& region, TensorArgType tag) {
    if (region.empty()) return;
    SpaceRecord& record = map_.record(t.space);
    bool tracing = options_.trace != nullptr;
    // Only an INOUT replaces what it covers: later writers and readers are ordered after it, so they reach
    // the replaced tasks through it. In a manual scope a later task of the scope is not ordered after this
    // one.
    bool replaces = tag == TensorArgType::INOUT && task.manual_scope == 0;
    auto visit = [&](const Entry& entry, Overlap overlap) {
        bool stale = !tracing && entry.stale();
        bool ordered = stale || add_edge(task, entry.task, entry.serial, true);
        return stale || (replaces && ordered && overlap == Overlap::Covered);
    };
    if (tag != TensorArgType::OUTPUT_EXISTING) record.producers.visit_overlapping(region, visit);
    if (tag != TensorArgType::INPUT) record.readers.visit_overlapping(region, visit);
}

void Run::record(Task& task, const ChipTensor& t, const Region& region, TensorArgType tag) {
    if (region.empty()) return;
    SpaceRecord& record = map_.record(t.space);
    bool tracing = options_.trace != nullptr;
    if (tag != TensorArgType::INPUT) record.producers.add(region, &task, tracing);
    if (tag != TensorArgType::OUTPUT_EXISTING) record.readers.add(region, &task, tracing);
}

void Run::add_owner_edge(Task& task, const ChipTensor& t) {
    if (!t.owner_task_id.is_valid()) return;
    uint64_t serial;
    Task* owner = task_of(t.owner_task_id, &serial);
    if (owner != nullptr) add_edge(task, owner, serial, true);
}

// True when `task` is ordered after the given use of the slot `from`, by an edge or because that task is
// done.
bool Run::add_edge(Task& task, Task* from, uint64_t serial, bool inferred) {
    if (from == &task && serial == task.serial) return false;
    bool reused = from->serial != serial;
    if (!reused && inferred && task.manual_scope != 0 && from->manual_scope == task.manual_scope)
        return false;
    if (options_.trace != nullptr && (reused || from->marked_by != task.serial)) {
        options_.trace->edges.push_back(TraceEdge{serial, task.serial});
    }
    if (reused || from->marked_by == task.serial) return true;
    from->marked_by = task.serial;
    if (!from->done()) predecessors_.push_back(from);
    return true;
}

void Run::publish(Task& task) {
    uint32_t n = static_cast<uint32_t>(predecessors_.size());
    Task::reserve(task.edges, task.edge_capacity, n);
    task.pending.store(static_cast<int32_t>(n) + 1, std::memory_order_relaxed);
    submitted_.store(submitted_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    int32_t met = 1;  // this thread's own hold, and predecessors that finished meanwhile
    for (uint32_t i = 0; i < n; ++i) {
        Edge& edge = task.edges[i];
        edge.successor = &task;
        std::atomic<Edge*>& list = predecessors_[i]->successors;
        Edge* head = list.load(std::memory_order_acquire);
        do {
            edge.next = head;
        } while (head != closed_list() && !list.compare_exchange_weak(head, &edge, std::memory_order_acq_rel,
                                                                      std::memory_order_acquire));
        if (head == closed_list()) ++met;
    }
    if (task.pending.fetch_sub(met, std::memory_order_acq_rel) == met) ready_.push(&task);
}

Task* Run::acquire_slot() {
    if (free_ == nullptr) free_ = freed_.take_all();
    if (free_ == nullptr && slots_.size() < static_cast<size_t>(options_.task_window)) {
        uint32_t n = slots_.size() < 256 ? 64 : 256;
        chunks_.push_back(std::make_unique<Task[]>(n));
        for (uint32_t i = 0; i < n; ++i) {
            Task* task = &chunks_.back()[i];
            task->index = static_cast<uint32_t>(slots_.size());
            task->next = free_;
            free_ = task;
            slots_.push_back(task);
        }
    }
    // Back-pressure: the window is full, so this thread works until a slot is free.
    wait_for([this] { return free_ != nullptr || (free_ = freed_.take_all()) != nullptr || is_fatal(); });
    if (is_fatal()) return nullptr;
    Task* task = free_;
    free_ = task->next;
    task->tensor_count = task->hold_count = 0;
    task->successors.store(nullptr, std::memory_order_relaxed);
    return task;
}

void Run::give_up(Task* task) {
    release_holds(*task);
    task->successors.store(closed_list(), std::memory_order_relaxed);
    task->next = free_;
    free_ = task;
}

void Run::hold(Task& task, const ChipTensor& t) {
    if (t.owner == nullptr) return;
    __atomic_fetch_add(&t.owner->uses, 1, __ATOMIC_RELAXED);
    task.holds[task.hold_count++] = t.owner;
}

void Run::release_holds(Task& task) {
    for (uint32_t i = 0; i < task.hold_count; ++i) {
        PyptoBuffer* buffer = task.holds[i];
        if (__atomic_sub_fetch(&buffer->uses, 1, __ATOMIC_ACQ_REL) == 0) engine_.buffers().release(buffer);
    }
    task.hold_count = 0;
}

void Run::allocate(const TensorCreateInfo* const* infos, uint32_t n, TaskOutputTensors* outputs) {
    if (is_fatal()) return;
    if (n == 0) return fail("alloc_tensors without a buffer");
    outputs->set_task_id(PTO2TaskId{raw_id(next_serial_++, kFinishedIndex)});
    for (uint32_t i = 0; i < n; ++i) {
        if (!make_tensor(*infos[i], outputs->task_id(), outputs)) return;
    }
}

bool Run::make_tensor(const TensorCreateInfo& info, PTO2TaskId owner, TaskOutputTensors* outputs) {
    if (info.ndims < 1 || info.ndims > static_cast<uint32_t>(PYPTO_MAX_DIMS)) {
        fail("a buffer of %u dims; 1 to 5 are possible", info.ndims);
        return false;
    }
    if (info.has_initial_value && !can_fill(info)) {
        fail("initial value %g for an element type that only takes 0", info.initial_float);
        return false;
    }
    ChipTensor t;
    uint64_t elements = 1;
    for (uint32_t k = info.ndims; k-- > 0;) {
        t.shapes[k] = info.shapes[k];
        t.strides[k] = static_cast<uint32_t>(elements);
        if (__builtin_mul_overflow(elements, uint64_t{info.shapes[k] == 0 ? 1 : info.shapes[k]}, &elements) ||
            (k > 0 && elements > UINT32_MAX)) {
            fail("a buffer whose strides exceed 32 bits");
            return false;
        }
    }
    t.ndims = info.ndims;
    t.dtype = info.dtype;
    uint64_t bytes = elements * pypto_element_bytes(info.dtype);
    Buffer* buffer = engine_.buffers().allocate(bytes);
    if (buffer == nullptr) {
        fail("out of memory: a buffer of %llu bytes", static_cast<unsigned long long>(bytes));
        return false;
    }
    buffer->uses = 1;
    if (options_.trace != nullptr) options_.trace->made(*buffer);
    t.owner = buffer;  // released with `t`; the copy in `outputs` keeps it
    t.buffer.addr = t.space = reinterpret_cast<uint64_t>(buffer->data());
    t.buffer.size = bytes;
    t.owner_task_id = owner;
    t.manual_dep = info.manual_dep;
    if (info.has_initial_value) {
        fill(buffer->data(), bytes, info);
    } else if (options_.checked) {
        std::memset(buffer->data(), 0xFF, bytes);  // NaN, or -1: what was never written shows
    }
    outputs->append(t);
    return true;
}

// The address of one element; `window`, if given, becomes a view of just that element. Null after an error.
const void* Run::element_of(const ChipTensor& t, uint32_t ndims, const uint32_t* indices,
                            ChipTensor* window) {
    if (t.buffer.addr == 0) {
        fail("element access on a tensor without memory");
        return nullptr;
    }
    if (ndims != t.ndims) {
        fail("element access with %u indices on a tensor of rank %u", ndims, t.ndims);
        return nullptr;
    }
    uint64_t offset = t.start_offset;
    for (uint32_t k = 0; k < ndims; ++k) {
        if (indices[k] >= t.shapes[k]) {
            fail("element access out of range: index %u in dim %u of extent %u", indices[k], k, t.shapes[k]);
            return nullptr;
        }
        offset += uint64_t{indices[k]} * t.strides[k];
    }
    if (window != nullptr) {
        *window = t;
        window->start_offset = offset;
        for (uint32_t k = 0; k < ndims; ++k) window->shapes[k] = 1;
    }
    return reinterpret_cast<const char*>(t.buffer.addr) + offset * pypto_element_bytes(t.dtype);
}

void* Run::await_element(const ChipTensor& t, uint32_t ndims, const uint32_t* indices, uint32_t bytes,
                         bool write) {
    if (is_fatal()) return nullptr;
    ChipTensor window;
    const void* element = element_of(t, ndims, indices, &window);
    if (element == nullptr) return nullptr;
    if (bytes != pypto_element_bytes(t.dtype)) {
        fail("element access of %u bytes on a tensor with elements of %u", bytes,
             pypto_element_bytes(t.dtype));
        return nullptr;
    }
    std::vector<std::pair<Task*, uint64_t>> awaited;
    uint64_t serial;
    Task* owner = t.owner_task_id.is_valid() ? task_of(t.owner_task_id, &serial) : nullptr;
    if (owner != nullptr) awaited.emplace_back(owner, serial);
    Region region = region_of(window);
    auto collect = [&](const Entry& entry, Overlap) {
        awaited.emplace_back(entry.task, entry.serial);
        return false;
    };
    SpaceRecord& record = map_.record(t.space);
    record.producers.visit_overlapping(region, collect);
    if (write) record.readers.visit_overlapping(region, collect);
    for (auto& [task, use] : awaited) {
        wait_for(
            [this, task = task, use = use] { return task->serial != use || task->done() || is_fatal(); });
    }
    return is_fatal() ? nullptr : const_cast<void*>(element);
}

void Run::scope_begin(PTO2ScopeMode mode) {
    ++scope_depth_;
    if (options_.trace != nullptr) options_.trace->begin_scope(mode == PTO2ScopeMode::MANUAL);
    if (manual_depth_ > 0) {
        ++manual_depth_;
        if (mode == PTO2ScopeMode::AUTO) fail("an AUTO scope inside a MANUAL scope");
    } else if (mode == PTO2ScopeMode::MANUAL) {
        manual_depth_ = 1;
        manual_scope_ = next_manual_scope_++;
    }
}

void Run::scope_end() {
    if (scope_depth_ == 0) return fail("rt_scope_end without rt_scope_begin");
    --scope_depth_;
    if (options_.trace != nullptr) options_.trace->end_scope();
    if (manual_depth_ > 0 && --manual_depth_ == 0) manual_scope_ = 0;
}

void Run::fail(const char* format, ...) {
    char message[2048];
    va_list values;
    va_start(values, format);
    vsnprintf(message, sizeof message, format, values);
    va_end(values);
    std::lock_guard<std::mutex> guard(error_mutex_);
    if (error_.empty()) error_ = message[0] == '\0' ? "unknown error" : message;
    fatal_.store(1, std::memory_order_release);
}

}  // namespace pypto

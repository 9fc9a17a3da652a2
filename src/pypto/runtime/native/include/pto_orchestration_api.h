// The task API that orchestration code is written against.
//
// Orchestration code runs on one thread, describes tasks, and submits them; the runtime orders them by the
// tensors they name and runs them on worker threads. Everything here is plain data and inline code: the
// runtime itself is reached through one table of functions that the loader binds, so that an orchestration
// compiles in milliseconds and needs no library at link time.
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <new>

// std::min and std::max without the rest of <algorithm>.
#if defined(__has_include) && __has_include(<bits/stl_algobase.h>)
#include <bits/stl_algobase.h>
#elif defined(__has_include) && __has_include(<__algorithm/min.h>) && __has_include(<__algorithm/max.h>)
#include <__algorithm/max.h>
#include <__algorithm/min.h>
#else
#include <algorithm>
#endif

#include "pypto_abi.h"

#define PYPTO_HIDDEN __attribute__((visibility("hidden")))

// ---------------------------------------------------------------- scalars

// Storage of element types that C++ lacks: their bits travel, arithmetic on them happens in kernels.
struct half {
    uint16_t bits;
};
struct bfloat16_t {
    uint16_t bits;
};
struct float8_e4m3_t {
    uint8_t bits;
};
struct float8_e5m2_t {
    uint8_t bits;
};
struct float8_e8m0_t {
    uint8_t bits;
};
struct float4_e2m1x2_t {
    uint8_t bits;
};

template <class T>
inline uint64_t to_u64(T value) {
    static_assert(sizeof(T) <= 8 && __is_trivially_copyable(T), "a scalar has at most 64 bits");
    uint64_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    return bits;
}

template <class T>
inline T from_u64(uint64_t bits) {
    static_assert(sizeof(T) <= 8 && __is_trivially_copyable(T), "a scalar has at most 64 bits");
    T value;
    __builtin_memcpy(&value, &bits, sizeof(T));
    return value;
}

constexpr uint32_t pypto_element_bytes(DataType dtype) {
    switch (dtype) {
        case DataType::INT64:
        case DataType::UINT64: return 8;
        case DataType::FLOAT32:
        case DataType::INT32:
        case DataType::UINT32: return 4;
        case DataType::FLOAT16:
        case DataType::BFLOAT16:
        case DataType::INT16:
        case DataType::UINT16: return 2;
        default: return 1;  // bytes, and FP4 whose extents count carrier bytes
    }
}

// ---------------------------------------------------------------- tasks, kernels

struct PTO2TaskId {
    uint64_t raw;
    static constexpr PTO2TaskId invalid() { return PTO2TaskId{~uint64_t{0}}; }
    constexpr bool is_valid() const { return raw != ~uint64_t{0}; }
    constexpr bool operator==(const PTO2TaskId& other) const { return raw == other.raw; }
    constexpr bool operator!=(const PTO2TaskId& other) const { return raw != other.raw; }
};

constexpr int32_t INVALID_KERNEL_ID = -1;

struct MixedKernels {
    int32_t aic_kernel_id = INVALID_KERNEL_ID;
    int32_t aiv0_kernel_id = INVALID_KERNEL_ID;
    int32_t aiv1_kernel_id = INVALID_KERNEL_ID;
};

enum class PTO2ScopeMode : int32_t { AUTO = 0, MANUAL = 1 };
enum class TensorArgType : uint8_t { INPUT = 0, OUTPUT = 1, INOUT = 2, OUTPUT_EXISTING = 3, NO_DEP = 4 };
enum class PredicateOp : int32_t { EQ = 0, NE = 1, GT = 2, LT = 3, GE = 4, LE = 5 };

constexpr uint32_t DEP_WAIT = 1;  // order only
constexpr uint32_t DEP_RETAIN =
    2;  // keep the producer's buffers; the runtime counts uses, so it needs no help

struct PTO2OrchestrationConfig {
    int32_t expected_arg_count;
};

// ---------------------------------------------------------------- the runtime's table

struct ChipTensor;
class TensorCreateInfo;
class CoreTaskArgs;
class TaskOutputTensors;

// Memory made by the runtime. It lives while a handle or an unfinished task names it.
struct PyptoBuffer {
    int64_t uses;
};

struct PyptoRuntimeApi {
    uint64_t version;
    void (*submit)(const MixedKernels*, const CoreTaskArgs*, TaskOutputTensors*);
    void (*allocate)(const TensorCreateInfo* const*, uint32_t, TaskOutputTensors*);
    void (*free_buffer)(PyptoBuffer*);
    void (*scope_begin)(int32_t mode);
    void (*scope_end)();
    void* (*await_element)(const ChipTensor*, uint32_t ndims, const uint32_t* indices, uint32_t bytes,
                           int32_t write);
    int32_t (*cluster_count)();
    int32_t (*aiv_count)();
    int32_t (*is_fatal)();
    void (*report_fatal)(int32_t code, const char* message);
    void (*orchestration_done)();
    void (*log)(int32_t level, const char* message);
};

constexpr uint64_t PYPTO_RUNTIME_API_VERSION = 1;

// Hidden, so that every orchestration library binds its own.
PYPTO_HIDDEN inline const PyptoRuntimeApi* pypto_runtime_api = nullptr;

extern "C" __attribute__((used, visibility("default"))) inline int32_t pypto_bind_runtime(
    const PyptoRuntimeApi* api) {
    if (api->version != PYPTO_RUNTIME_API_VERSION) return -1;
    pypto_runtime_api = api;
    return 0;
}

__attribute__((format(printf, 2, 3))) inline void rt_report_fatal(int32_t code, const char* format, ...) {
    char message[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(message, sizeof message, format, values);
    va_end(values);
    pypto_runtime_api->report_fatal(code, message);
}

__attribute__((format(printf, 2, 3))) inline void pypto_log(int32_t level, const char* format, ...) {
    char message[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(message, sizeof message, format, values);
    va_end(values);
    pypto_runtime_api->log(level, message);
}

#define LOG_DEBUG(...) pypto_log(0, __VA_ARGS__)
#define LOG_INFO(...) pypto_log(1, __VA_ARGS__)
#define LOG_WARN(...) pypto_log(2, __VA_ARGS__)
#define LOG_ERROR(...) pypto_log(3, __VA_ARGS__)
#define LOG_TIMING(...) pypto_log(5, __VA_ARGS__)

inline bool rt_is_fatal() { return pypto_runtime_api->is_fatal() != 0; }
inline void rt_orchestration_done() { pypto_runtime_api->orchestration_done(); }
inline int32_t rt_available_cluster_count() { return pypto_runtime_api->cluster_count(); }
inline int32_t rt_available_aiv_count() { return pypto_runtime_api->aiv_count(); }

// ---------------------------------------------------------------- tensors

// A strided window on a buffer. Copies share the buffer; the first 72 bytes are what kernels see
// (PyptoTensorDescriptor).
struct ChipTensor {
    struct Buffer {
        uint64_t addr = 0;
        uint64_t size = 0;  // bytes
    } buffer;
    uint64_t start_offset = 0;  // elements
    uint32_t shapes[PYPTO_MAX_DIMS] = {};
    uint32_t strides[PYPTO_MAX_DIMS] = {};  // elements
    uint32_t ndims = 0;
    DataType dtype = DataType::FLOAT32;
    PTO2TaskId owner_task_id = PTO2TaskId::invalid();
    uint64_t space =
        0;  // base of the memory in which overlap is decided: one value for buffers that share bytes
    PyptoBuffer* owner = nullptr;
    bool is_contiguous = true;
    bool manual_dep = false;

    ChipTensor() = default;
    ChipTensor(const ChipTensor& other) {
        copy_fields(other);
        acquire();
    }
    ChipTensor& operator=(const ChipTensor& other) {
        if (this == &other) return *this;
        PyptoBuffer* old = owner;
        copy_fields(other);
        acquire();
        release(old);
        return *this;
    }
    ~ChipTensor() { release(owner); }

    uint64_t numel() const {
        uint64_t n = 1;
        for (uint32_t k = 0; k < ndims; ++k) n *= shapes[k];
        return n;
    }

    // Same rank and strides, moved by `offsets`. An extent of 0 gives an empty view.
    template <class Shape, class Offset>
    ChipTensor view(const Shape* new_shapes, const Offset* offsets, bool track_manually) const {
        ChipTensor result = view(new_shapes, offsets);
        result.manual_dep = track_manually;
        return result;
    }
    template <class Shape, class Offset>
    ChipTensor view(const Shape* new_shapes, const Offset* offsets) const {
        ChipTensor result(*this);
        bool empty = false;
        for (uint32_t k = 0; k < ndims; ++k) {
            result.shapes[k] = static_cast<uint32_t>(new_shapes[k]);
            empty = empty || result.shapes[k] == 0;
        }
        if (empty) {
            result.is_contiguous = true;
            return result;
        }
        for (uint32_t k = 0; k < ndims; ++k) {
            uint64_t offset = static_cast<uint32_t>(offsets[k]);
            if (offset + result.shapes[k] > shapes[k]) {
                rt_report_fatal(1, "view leaves its tensor: dim %u, offset %llu + extent %u > %u", k,
                                static_cast<unsigned long long>(offset), result.shapes[k], shapes[k]);
                return *this;
            }
            result.start_offset += offset * strides[k];
        }
        result.is_contiguous = result.compute_contiguous();
        return result;
    }

    ChipTensor transpose(uint32_t a, uint32_t b) const {
        ChipTensor result(*this);
        if (a >= ndims || b >= ndims) {
            rt_report_fatal(1, "transpose axes %u, %u of a tensor of rank %u", a, b, ndims);
            return result;
        }
        result.shapes[a] = shapes[b];
        result.shapes[b] = shapes[a];
        result.strides[a] = strides[b];
        result.strides[b] = strides[a];
        result.is_contiguous = result.compute_contiguous();
        return result;
    }

    template <class Axis>
    ChipTensor permute(const Axis* order) const {
        ChipTensor result(*this);
        uint32_t seen = 0;
        for (uint32_t k = 0; k < ndims; ++k) {
            uint32_t axis = static_cast<uint32_t>(order[k]);
            if (axis >= ndims || (seen >> axis & 1u)) {
                rt_report_fatal(1, "permute: axis %u at place %u is no permutation of rank %u", axis, k,
                                ndims);
                return *this;
            }
            seen |= 1u << axis;
            result.shapes[k] = shapes[axis];
            result.strides[k] = strides[axis];
        }
        result.is_contiguous = result.compute_contiguous();
        return result;
    }

    ChipTensor slice(uint32_t dim, uint32_t start, uint32_t end, uint32_t step = 1) const {
        ChipTensor result(*this);
        if (dim >= ndims || end > shapes[dim] || start > end || step == 0) {
            rt_report_fatal(1, "slice [%u:%u:%u] of dim %u leaves its tensor", start, end, step, dim);
            return result;
        }
        result.start_offset += static_cast<uint64_t>(start) * strides[dim];
        result.shapes[dim] = (end - start + step - 1) / step;
        result.strides[dim] = strides[dim] * step;
        result.is_contiguous = result.compute_contiguous();
        return result;
    }

    template <class Shape>
    ChipTensor reshape(const Shape* new_shapes, uint32_t n) const {
        ChipTensor result(*this);
        uint64_t count = 1;
        for (uint32_t k = 0; k < n; ++k) count *= static_cast<uint32_t>(new_shapes[k]);
        if (n > static_cast<uint32_t>(PYPTO_MAX_DIMS) || count != numel() || !compute_contiguous()) {
            rt_report_fatal(1, "reshape needs a contiguous tensor of as many elements: %llu to %llu",
                            static_cast<unsigned long long>(numel()), static_cast<unsigned long long>(count));
            return result;
        }
        result.ndims = n;
        uint32_t stride = 1;
        for (uint32_t k = n; k-- > 0;) {
            result.shapes[k] = static_cast<uint32_t>(new_shapes[k]);
            result.strides[k] = stride;
            stride *= result.shapes[k] == 0 ? 1 : result.shapes[k];
        }
        result.is_contiguous = true;
        return result;
    }

    bool compute_contiguous() const {
        uint64_t expected = 1;
        for (uint32_t k = ndims; k-- > 0;) {
            if (shapes[k] == 0) return true;
            if (shapes[k] != 1 && strides[k] != expected) return false;
            expected *= shapes[k];
        }
        return true;
    }

private:
    void copy_fields(const ChipTensor& other) {
        buffer = other.buffer;
        start_offset = other.start_offset;
        for (int k = 0; k < PYPTO_MAX_DIMS; ++k) {
            shapes[k] = other.shapes[k];
            strides[k] = other.strides[k];
        }
        ndims = other.ndims;
        dtype = other.dtype;
        owner_task_id = other.owner_task_id;
        space = other.space;
        owner = other.owner;
        is_contiguous = other.is_contiguous;
        manual_dep = other.manual_dep;
    }
    void acquire() const {
        if (owner != nullptr) __atomic_fetch_add(&owner->uses, 1, __ATOMIC_RELAXED);
    }
    static void release(PyptoBuffer* buffer) {
        if (buffer != nullptr && __atomic_sub_fetch(&buffer->uses, 1, __ATOMIC_ACQ_REL) == 0) {
            pypto_runtime_api->free_buffer(buffer);
        }
    }
};

static_assert(offsetof(ChipTensor, start_offset) == offsetof(PyptoTensorDescriptor, start_offset),
              "descriptor layout");
static_assert(offsetof(ChipTensor, shapes) == offsetof(PyptoTensorDescriptor, shapes), "descriptor layout");
static_assert(offsetof(ChipTensor, strides) == offsetof(PyptoTensorDescriptor, strides), "descriptor layout");
static_assert(offsetof(ChipTensor, ndims) == offsetof(PyptoTensorDescriptor, ndims), "descriptor layout");
static_assert(offsetof(ChipTensor, dtype) == offsetof(PyptoTensorDescriptor, dtype), "descriptor layout");

// What to allocate: a row-major buffer of 1 to 5 dims.
class TensorCreateInfo {
public:
    template <class Shape>
    TensorCreateInfo(const Shape* new_shapes, uint32_t n, DataType type = DataType::FLOAT32,
                     bool untracked = false)
        : ndims(n), dtype(type), manual_dep(untracked) {
        for (uint32_t k = 0; k < n && k < static_cast<uint32_t>(PYPTO_MAX_DIMS); ++k) {
            shapes[k] = static_cast<uint32_t>(new_shapes[k]);
        }
    }

    // Fills the whole buffer before any task sees it.
    template <class T>
    void set_initial_value(T value) {
        has_initial_value = true;
        initial_float = static_cast<double>(value);
        initial_int = static_cast<int64_t>(value);
    }

    uint32_t shapes[PYPTO_MAX_DIMS] = {};
    uint32_t ndims;
    DataType dtype;
    bool manual_dep;
    bool has_initial_value = false;
    double initial_float = 0;
    int64_t initial_int = 0;
};

// What a submit gives back: the task's id and the tensors that the runtime created for it. Most tasks create
// none, and a generated function holds one of these per task, so the tensors are kept outside.
class TaskOutputTensors {
public:
    TaskOutputTensors() = default;
    TaskOutputTensors(const TaskOutputTensors& other) : id_(other.id_) { append_all(other); }
    TaskOutputTensors& operator=(const TaskOutputTensors& other) {
        if (this == &other) return *this;
        clear();
        id_ = other.id_;
        append_all(other);
        return *this;
    }
    ~TaskOutputTensors() { clear(); }

    PTO2TaskId task_id() const { return id_; }
    uint32_t size() const { return count_; }
    bool empty() const { return count_ == 0; }
    // The i-th created tensor; an empty tensor when there is none, which only happens after a fatal error.
    const ChipTensor& get_ref(uint32_t i) const {
        if (i < count_) return tensors_[i];
        return missing(i);
    }

    // For the runtime.
    void set_task_id(PTO2TaskId id) { id_ = id; }
    void append(const ChipTensor& tensor) {
        if (count_ == PYPTO_MAX_TENSORS) return;
        if ((count_ & (count_ - 1)) == 0) grow(count_ == 0 ? 1 : 2 * count_);
        new (static_cast<void*>(tensors_ + count_)) ChipTensor(tensor);
        ++count_;
    }

private:
    static const ChipTensor& missing(uint32_t i) {
        static const ChipTensor nothing;
        if (!rt_is_fatal()) rt_report_fatal(1, "task has no created output number %u", i);
        return nothing;
    }
    void append_all(const TaskOutputTensors& other) {
        for (uint32_t i = 0; i < other.count_; ++i) append(other.get_ref(i));
    }
    // Tensors hold no pointer to themselves, so they may be moved as bytes.
    void grow(uint32_t capacity) {
        void* larger = __builtin_malloc(sizeof(ChipTensor) * capacity);
        if (count_ != 0) __builtin_memcpy(larger, static_cast<void*>(tensors_), sizeof(ChipTensor) * count_);
        __builtin_free(static_cast<void*>(tensors_));
        tensors_ = static_cast<ChipTensor*>(larger);
    }
    void clear() {
        for (uint32_t i = 0; i < count_; ++i) tensors_[i].~ChipTensor();
        __builtin_free(static_cast<void*>(tensors_));
        tensors_ = nullptr;
        count_ = 0;
    }

    PTO2TaskId id_ = PTO2TaskId::invalid();
    uint32_t count_ = 0;
    ChipTensor* tensors_ = nullptr;
};

// ---------------------------------------------------------------- task description

// `operand` is read when the task is ready; the task runs only if `operand <op> target` holds.
struct CoreTaskPredicate {
    struct Operand {
        const ChipTensor* tensor = nullptr;
        uint32_t ndims = 0;
        uint32_t indices[PYPTO_MAX_DIMS] = {};
    } operand;
    PredicateOp op = PredicateOp::NE;
    int64_t target = 0;
};

class LaunchSpec {
public:
    void set_block_num(int64_t n) { block_num_ = n; }
    void set_core_num(int64_t n) { block_num_ = n; }
    void set_require_sync_start(bool required) { sync_start_ = required; }
    int64_t block_num() const { return block_num_; }
    bool require_sync_start() const { return sync_start_; }

private:
    int64_t block_num_ = 1;
    bool sync_start_ = false;
};

// The arguments of one task: tensors first, then scalars. It keeps references: what it is given must live
// until the submit returns, which is why nothing binds to a temporary.
class CoreTaskArgs {
public:
    CoreTaskArgs() {}
    CoreTaskArgs(const CoreTaskArgs&) = delete;
    CoreTaskArgs& operator=(const CoreTaskArgs&) = delete;

    template <class... T>
    void add_input(T&... tensors) {
        (add(TensorArgType::INPUT, &tensor(tensors)), ...);
    }
    template <class... T>
    void add_inout(T&... tensors) {
        (add(TensorArgType::INOUT, &tensor(tensors)), ...);
    }
    template <class... T>
    void add_no_dep(T&... tensors) {
        (add(TensorArgType::NO_DEP, &tensor(tensors)), ...);
    }
    // Existing tensors become OUTPUT_EXISTING, create infos OUTPUT.
    template <class First, class... T>
    void add_output(First& first, T&... rest) {
        static_assert((same_kind(kind(static_cast<First*>(nullptr)), kind(static_cast<T*>(nullptr))) && ...),
                      "tensors and create infos are not mixed in one add_output");
        add_one_output(first);
        (add_one_output(rest), ...);
    }

    template <class... T>
    void add_scalar(T... values) {
        (add_bits(to_u64(values)), ...);
    }
    template <class T>
    void add_scalars(const T* values, uint32_t n) {
        for (uint32_t i = 0; i < n; ++i) add_bits(to_u64(values[i]));
    }
    void add_scalars_i32(const int32_t* values, uint32_t n) { add_scalars(values, n); }

    void set_dependencies(const PTO2TaskId* ids, uint32_t n) {
        if (n == 0) {
            deps_ = nullptr;
            dep_count_ = 0;
        } else if (ids == nullptr) {
            set_error("set_dependencies: null array with a count");
        } else if (dep_count_ != 0) {
            set_error("set_dependencies was called twice");
        } else {
            deps_ = ids;
            dep_count_ = n;
        }
    }
    template <class Kind>
    void set_dependencies_with_kinds(const PTO2TaskId* ids, const Kind* kinds, uint32_t n) {
        (void)kinds;  // every kind orders, and buffers live as long as something names them
        set_dependencies(ids, n);
    }

    void set_allow_early_resolve(bool) {}  // a hint of timing; results never depend on it
    void set_task_timing_slot(uint32_t slot) {
        if (slot > 15) set_error("timing slot above 15");
    }
    void set_predicate(const CoreTaskPredicate& predicate) { predicate_ = &predicate; }
    // Marks tensors among the arguments whose contents a dump shall show; without arguments: all.
    template <class... T>
    void dump(const T&... tensors) {
        if (sizeof...(T) == 0) dump_mask_ = ~0u;
        (mark_dump(&tensors), ...);
    }

    LaunchSpec launch_spec;
    bool has_error = false;  // the first wrong use sets both; the submit is fatal then
    const char* error_msg = nullptr;

    // For the runtime.
    uint32_t tensor_count() const { return tensor_count_; }
    uint32_t scalar_count() const { return scalar_count_; }
    TensorArgType tag(uint32_t i) const { return tags_[i]; }
    const ChipTensor& tensor_at(uint32_t i) const { return *static_cast<const ChipTensor*>(tensors_[i]); }
    const TensorCreateInfo& create_info_at(uint32_t i) const {
        return *static_cast<const TensorCreateInfo*>(tensors_[i]);
    }
    const uint64_t* scalars() const { return scalars_; }
    const PTO2TaskId* dependencies() const { return deps_; }
    uint32_t dependency_count() const { return dep_count_; }
    const CoreTaskPredicate* predicate() const { return predicate_; }
    uint32_t dump_mask() const { return dump_mask_; }

private:
    static const ChipTensor& tensor(const ChipTensor& t) { return t; }
    static constexpr int kind(const ChipTensor*) { return 0; }
    static constexpr int kind(const TensorCreateInfo*) { return 1; }
    static constexpr bool same_kind(int a, int b) { return a == b; }
    void add_one_output(const ChipTensor& t) { add(TensorArgType::OUTPUT_EXISTING, &t); }
    void add_one_output(const TensorCreateInfo& info) { add(TensorArgType::OUTPUT, &info); }

    void add(TensorArgType type, const void* entry) {
        if (scalar_count_ != 0) return set_error("a tensor argument follows a scalar argument");
        if (tensor_count_ == PYPTO_MAX_TENSORS) return set_error("more than 32 tensor arguments");
        tags_[tensor_count_] = type;
        tensors_[tensor_count_++] = entry;
    }
    void add_bits(uint64_t bits) {
        if (scalar_count_ == PYPTO_MAX_SCALARS) return set_error("more than 16 scalar arguments");
        scalars_[scalar_count_++] = bits;
    }
    void mark_dump(const void* entry) {
        for (uint32_t i = 0; i < tensor_count_; ++i) {
            if (tensors_[i] == entry) {
                dump_mask_ |= 1u << i;
                return;
            }
        }
        set_error("dump of something that is not among the arguments");
    }
    void set_error(const char* message) {
        if (has_error) return;
        has_error = true;
        error_msg = message;
    }

    uint32_t tensor_count_ = 0;
    uint32_t scalar_count_ = 0;
    uint32_t dep_count_ = 0;
    uint32_t dump_mask_ = 0;
    const PTO2TaskId* deps_ = nullptr;
    const CoreTaskPredicate* predicate_ = nullptr;
    TensorArgType tags_[PYPTO_MAX_TENSORS];
    const void* tensors_[PYPTO_MAX_TENSORS];
    uint64_t scalars_[PYPTO_MAX_SCALARS];
};

// ---------------------------------------------------------------- calls

inline TaskOutputTensors rt_submit_task(const MixedKernels& kernels, const CoreTaskArgs& args) {
    TaskOutputTensors outputs;
    pypto_runtime_api->submit(&kernels, &args, &outputs);
    return outputs;
}
inline TaskOutputTensors rt_submit_aic_task(int32_t kernel_id, const CoreTaskArgs& args) {
    return rt_submit_task(MixedKernels{kernel_id, INVALID_KERNEL_ID, INVALID_KERNEL_ID}, args);
}
inline TaskOutputTensors rt_submit_aiv_task(int32_t kernel_id, const CoreTaskArgs& args) {
    return rt_submit_task(MixedKernels{INVALID_KERNEL_ID, kernel_id, INVALID_KERNEL_ID}, args);
}
// A task without a kernel; it takes part in the graph like any other.
inline TaskOutputTensors rt_submit_dummy_task(const CoreTaskArgs& args) {
    TaskOutputTensors outputs;
    pypto_runtime_api->submit(nullptr, &args, &outputs);
    return outputs;
}

inline TaskOutputTensors alloc_tensors(const TensorCreateInfo infos[], uint32_t n) {
    TaskOutputTensors outputs;
    const TensorCreateInfo* entries[PYPTO_MAX_TENSORS];
    if (n > static_cast<uint32_t>(PYPTO_MAX_TENSORS)) {
        rt_report_fatal(1, "alloc_tensors of %u buffers; at most %d", n, PYPTO_MAX_TENSORS);
        return outputs;
    }
    for (uint32_t i = 0; i < n; ++i) entries[i] = infos + i;
    pypto_runtime_api->allocate(entries, n, &outputs);
    return outputs;
}
template <class... Info>
inline TaskOutputTensors alloc_tensors(const TensorCreateInfo& first, const Info&... rest) {
    TaskOutputTensors outputs;
    const TensorCreateInfo* entries[] = {&first, &rest...};
    pypto_runtime_api->allocate(entries, 1 + sizeof...(rest), &outputs);
    return outputs;
}
// The OUTPUT entries of `args` become buffers.
inline TaskOutputTensors alloc_tensors(const CoreTaskArgs& args) {
    TaskOutputTensors outputs;
    const TensorCreateInfo* entries[PYPTO_MAX_TENSORS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < args.tensor_count(); ++i) {
        if (args.tag(i) == TensorArgType::OUTPUT) entries[n++] = &args.create_info_at(i);
    }
    if (args.has_error || n != args.tensor_count()) {
        rt_report_fatal(1, "alloc_tensors: %s",
                        args.has_error ? args.error_msg : "an argument is no output");
        return outputs;
    }
    pypto_runtime_api->allocate(entries, n, &outputs);
    return outputs;
}

inline void rt_scope_begin(PTO2ScopeMode mode = PTO2ScopeMode::AUTO) {
    pypto_runtime_api->scope_begin(static_cast<int32_t>(mode));
}
inline void rt_scope_end() { pypto_runtime_api->scope_end(); }

class PyptoScope {
public:
    explicit PyptoScope(PTO2ScopeMode mode = PTO2ScopeMode::AUTO) { rt_scope_begin(mode); }
    PyptoScope(const PyptoScope&) = delete;
    PyptoScope& operator=(const PyptoScope&) = delete;
    ~PyptoScope() { rt_scope_end(); }
};

// PTO2_SCOPE() { ... } or PTO2_SCOPE(PTO2ScopeMode::MANUAL) { ... }; not a loop, so break and continue pass
// through.
#define PTO2_SCOPE(...) if (PyptoScope pypto_scope_guard{__VA_ARGS__}; true)

// Waits for the tasks that write the element, then reads it.
template <class T>
inline T get_tensor_data(const ChipTensor& t, uint32_t ndims, const uint32_t* indices) {
    T value{};
    const void* element = pypto_runtime_api->await_element(&t, ndims, indices, sizeof(T), 0);
    if (element != nullptr) __builtin_memcpy(&value, element, sizeof(T));
    return value;
}
// Waits for the tasks that write or read the element, then writes it.
template <class T>
inline void set_tensor_data(const ChipTensor& t, uint32_t ndims, const uint32_t* indices, T value) {
    void* element = pypto_runtime_api->await_element(&t, ndims, indices, sizeof(T), 1);
    if (element != nullptr) __builtin_memcpy(element, &value, sizeof(T));
}

// ---------------------------------------------------------------- arguments of the whole program

class ChipTaskArgs {
public:
    class TensorRef {
    public:
        explicit TensorRef(const ChipTensor* tensor) : tensor_(tensor) {}
        const ChipTensor& ref() const { return *tensor_; }

    private:
        const ChipTensor* tensor_;
    };

    ChipTaskArgs(const ChipTensor* tensors, int32_t n_tensors, const uint64_t* scalars, int32_t n_scalars)
        : tensors_(tensors), scalars_(scalars), tensor_count_(n_tensors), scalar_count_(n_scalars) {}
    TensorRef tensor(int32_t i) const { return TensorRef(tensors_ + i); }
    uint64_t scalar(int32_t i) const { return scalars_[i]; }
    int32_t tensor_count() const { return tensor_count_; }
    int32_t scalar_count() const { return scalar_count_; }

private:
    const ChipTensor* tensors_;
    const uint64_t* scalars_;
    int32_t tensor_count_;
    int32_t scalar_count_;
};

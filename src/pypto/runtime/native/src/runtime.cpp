// The C interface of the runtime, called from Python, and the table that orchestrations are bound to.
//
// One translation unit: the runtime is built on a user's machine on first use, and the standard headers
// dominate.
#include <link.h>

#include "engine.cpp"
#include "execute.cpp"
#include "submit.cpp"

namespace pypto {
namespace {

Run& run() { return *Run::current(); }

const PyptoRuntimeApi kApi = {
    PYPTO_RUNTIME_API_VERSION,
    [](const MixedKernels* kernels, const CoreTaskArgs* args, TaskOutputTensors* outputs) {
        run().submit(kernels, *args, outputs);
    },
    [](const TensorCreateInfo* const* infos, uint32_t n, TaskOutputTensors* outputs) {
        run().allocate(infos, n, outputs);
    },
    [](PyptoBuffer* buffer) { Engine::instance().buffers().release(buffer); },
    [](int32_t mode) { run().scope_begin(static_cast<PTO2ScopeMode>(mode)); },
    [] { run().scope_end(); },
    [](const ChipTensor* t, uint32_t ndims, const uint32_t* indices, uint32_t bytes, int32_t write) {
        return run().await_element(*t, ndims, indices, bytes, write != 0);
    },
    [] { return run().options().clusters; },
    [] { return run().options().aivs; },
    [] { return static_cast<int32_t>(run().is_fatal()); },
    [](int32_t code, const char* message) { run().fail("%s (code %d)", message, code); },
    [] {},
    [](int32_t level, const char* message) {
        static const char* const kNames[] = {"DEBUG", "INFO", "WARN", "ERROR", "", "TIMING"};
        if (level >= 2) fprintf(stderr, "[orchestration] %s: %s\n", kNames[level <= 5 ? level : 1], message);
    },
};

// Runs `action` on a thread with a stack of that size. False when there is none to be had.
template <class Action>
bool run_on_stack(uint64_t bytes, Action& action) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_t thread;
    auto main = [](void* given) -> void* {
        (*static_cast<Action*>(given))();
        return nullptr;
    };
    bool started = pthread_attr_setstacksize(&attributes, (bytes + 0xFFFF) & ~uint64_t{0xFFFF}) == 0 &&
                   pthread_create(&thread, &attributes, main, &action) == 0;
    pthread_attr_destroy(&attributes);
    if (started) pthread_join(thread, nullptr);
    return started;
}

// The instructions of the library that `entry` is in. Empty when that cannot be told.
CrashGuard::Code code_around(const void* entry) {
    struct Search {
        uintptr_t wanted;
        CrashGuard::Code found;
    } search{reinterpret_cast<uintptr_t>(entry), {}};
    dl_iterate_phdr(
        [](dl_phdr_info* library, size_t, void* given) {
            auto& search = *static_cast<Search*>(given);
            for (int i = 0; i < library->dlpi_phnum; ++i) {
                const auto& part = library->dlpi_phdr[i];
                uintptr_t begin = library->dlpi_addr + part.p_vaddr;
                if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
                if (search.wanted - begin >= part.p_memsz) continue;
                search.found = {begin, begin + part.p_memsz};
                return 1;
            }
            return 0;
        },
        &search);
    return search.found;
}

// Arguments that share memory share a space, so that overlap between them is seen.
void assign_spaces(std::vector<ChipTensor>& tensors) {
    std::vector<ChipTensor*> order;
    order.reserve(tensors.size());
    for (ChipTensor& t : tensors) {
        if (t.buffer.size != 0) order.push_back(&t);
    }
    std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->buffer.addr < b->buffer.addr; });
    uint64_t space = 0, end = 0;
    for (ChipTensor* t : order) {
        if (t->buffer.addr >= end) space = t->buffer.addr;
        t->space = space;
        end = std::max(end, t->buffer.addr + t->buffer.size);
    }
}

}  // namespace
}  // namespace pypto

#define PYPTO_EXPORT extern "C" __attribute__((visibility("default")))

PYPTO_EXPORT pypto::Program* pypto_program_new(void* entry, void* config,
                                               int32_t (*bind)(const PyptoRuntimeApi*),
                                               uint64_t stack_bytes) {
    if (bind(&pypto::kApi) != 0) return nullptr;
    auto* program = new pypto::Program;
    program->stack_bytes = stack_bytes;
    program->entry = reinterpret_cast<void (*)(const ChipTaskArgs&)>(entry);
    program->config = reinterpret_cast<PTO2OrchestrationConfig (*)(const ChipTaskArgs&)>(config);
    return program;
}

PYPTO_EXPORT void pypto_program_free(pypto::Program* program) { delete program; }

PYPTO_EXPORT void pypto_program_add_kernel(pypto::Program* program, int32_t id, void* entry,
                                           uint64_t workspace_bytes, int32_t core_type, const char* name) {
    if (program->kernels.size() <= static_cast<size_t>(id)) program->kernels.resize(id + 1);
    auto kernel = std::make_unique<pypto::Kernel>();
    kernel->func_id = id;
    kernel->core_type = core_type;
    kernel->entry = reinterpret_cast<pypto::KernelEntry>(entry);
    kernel->workspace_bytes = workspace_bytes;
    kernel->name = strdup(name);  // error messages of a running task may outlive the program
    kernel->code = pypto::code_around(entry);
    program->kernels[id] = std::move(kernel);
}

// Runs `program` on tensors whose layouts are `layouts` and whose memory is at `addresses`. 0; or 1 with the
// message in `error`; or 2 when a person interrupted it, which is possible with `use` from pypto_arm or for
// pypto_cancel; else that is 0.
PYPTO_EXPORT int32_t pypto_run(const pypto::Program* program, const PyptoTensorDescriptor* layouts,
                               const uint64_t* addresses, int32_t tensor_count, const uint64_t* scalars,
                               int32_t scalar_count, const pypto::RunOptions* options, uint64_t use,
                               char* error, uint64_t error_bytes) {
    using namespace pypto;
    std::vector<ChipTensor> tensors(static_cast<size_t>(tensor_count));
    for (int32_t i = 0; i < tensor_count; ++i) {
        std::memcpy(static_cast<void*>(&tensors[i]), &layouts[i], sizeof(PyptoTensorDescriptor));
        tensors[i].buffer.addr = addresses[i];
        tensors[i].space = addresses[i];
    }
    if (tensor_count > 1) assign_spaces(tensors);
    Engine& engine = Engine::instance();
    Run* run = engine.acquire_run(*options, use);
    std::string message;
    auto execute = [&] { message = run->execute(*program, tensors, scalars, scalar_count); };
    if (program->stack_bytes == 0) {
        execute();
    } else if (!run_on_stack(program->stack_bytes, execute)) {
        message = "no thread with a stack of " + std::to_string(program->stack_bytes) + " bytes";
    }
    bool interrupted = run->was_interrupted();
    engine.release_run(run);
    if (interrupted) return 2;
    if (message.empty()) return 0;
    snprintf(error, error_bytes, "%s", message.c_str());
    return 1;
}

// Before a run on the main thread that SIGINT shall end. The run takes it back; without a run do so.
PYPTO_EXPORT uint64_t pypto_arm() { return pypto::Engine::instance().interrupts().arm(); }
PYPTO_EXPORT void pypto_disarm() { pypto::Engine::instance().interrupts().disarm(); }

PYPTO_EXPORT void pypto_cancel(uint64_t use) { pypto::Engine::instance().cancel(use); }

PYPTO_EXPORT void pypto_shutdown() { pypto::Engine::instance().stop(); }

// `dump_level`: 0 none, 1 marked arguments, 2 all; they are written to `dump_path`.
PYPTO_EXPORT pypto::Trace* pypto_trace_new(int32_t dump_level, const char* dump_path) {
    return new pypto::Trace(dump_level, dump_path);
}
PYPTO_EXPORT void pypto_trace_free(pypto::Trace* trace) { delete trace; }
PYPTO_EXPORT const pypto::TraceTask* pypto_trace_tasks(const pypto::Trace* trace, uint64_t* n) {
    *n = trace->tasks.size();
    return trace->tasks.data();
}
PYPTO_EXPORT const pypto::TraceEdge* pypto_trace_edges(const pypto::Trace* trace, uint64_t* n) {
    *n = trace->edges.size();
    return trace->edges.data();
}
PYPTO_EXPORT const pypto::TraceBlock* pypto_trace_blocks(const pypto::Trace* trace, uint64_t* n) {
    *n = trace->blocks.size();
    return trace->blocks.data();
}
PYPTO_EXPORT const pypto::TraceScope* pypto_trace_scopes(const pypto::Trace* trace, uint64_t* n) {
    *n = trace->scopes.size();
    return trace->scopes.data();
}
PYPTO_EXPORT const pypto::TraceDump* pypto_trace_dumps(const pypto::Trace* trace, uint64_t* n) {
    *n = trace->dumps.size();
    return trace->dumps.data();
}

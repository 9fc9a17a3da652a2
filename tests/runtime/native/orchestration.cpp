// An orchestration that carries out a script, so that one compilation serves many tests. The script is the
// first tensor: 64-bit words, see script.py for the commands.
#include "pto_orchestration_api.h"

namespace {

constexpr int kRegisters = 4096;

struct Machine {
    const int64_t* next;
    ChipTensor tensors[kRegisters];
    PTO2TaskId ids[4096];
    CoreTaskPredicate predicate;
    bool has_predicate = false;

    int64_t word() { return *next++; }
    template <class T>
    uint32_t list(T* out) {
        uint32_t n = static_cast<uint32_t>(word());
        for (uint32_t i = 0; i < n; ++i) out[i] = static_cast<T>(word());
        return n;
    }

    void submit(bool dummy) {
        MixedKernels kernels;
        kernels.aic_kernel_id = static_cast<int32_t>(word());
        kernels.aiv0_kernel_id = static_cast<int32_t>(word());
        kernels.aiv1_kernel_id = static_cast<int32_t>(word());
        CoreTaskArgs args;
        args.launch_spec.set_block_num(word());
        args.launch_spec.set_require_sync_start(word() != 0);
        int64_t scalar_first = word();
        if (scalar_first != 0) args.add_scalar(1);
        int64_t count = word();
        TensorCreateInfo* infos[8];
        int64_t created[8];
        int n_infos = 0;
        for (int64_t i = 0; i < count; ++i) {
            TensorArgType tag = static_cast<TensorArgType>(word());
            int64_t reg = word();
            if (tag == TensorArgType::OUTPUT) {  // as many elements as the following word says
                int64_t elements = word();       // a negative number makes a buffer that is not tracked
                uint32_t shape[1] = {static_cast<uint32_t>(elements < 0 ? -elements : elements)};
                infos[n_infos] = new TensorCreateInfo(shape, 1, DataType::UINT32, elements < 0);
                created[n_infos] = reg;
                args.add_output(*infos[n_infos++]);
                continue;
            }
            ChipTensor& t = tensors[reg];
            if (tag == TensorArgType::INPUT) args.add_input(t);
            if (tag == TensorArgType::INOUT) args.add_inout(t);
            if (tag == TensorArgType::OUTPUT_EXISTING) args.add_output(t);
            if (tag == TensorArgType::NO_DEP) args.add_no_dep(t);
        }
        uint64_t scalars[32];
        args.add_scalars(scalars, list(scalars));
        int64_t slots[4096];
        PTO2TaskId deps[4096];
        uint32_t n_deps = list(slots);
        for (uint32_t i = 0; i < n_deps; ++i) deps[i] = slots[i] < 0 ? PTO2TaskId::invalid() : ids[slots[i]];
        args.set_dependencies(deps, n_deps);
        if (has_predicate) args.set_predicate(predicate);
        TaskOutputTensors outputs = dummy ? rt_submit_dummy_task(args) : rt_submit_task(kernels, args);
        has_predicate = false;
        ids[word()] = outputs.task_id();
        for (int i = 0; i < n_infos; ++i) {
            tensors[created[i]] = outputs.get_ref(static_cast<uint32_t>(i));
            delete infos[i];
        }
    }

    // A submit whose arguments are wrong in the way of number `how`, known before the submit.
    static void misuse(int64_t how, ChipTensor& t) {
        ChipTensor stranger = t;
        PTO2TaskId id = rt_submit_dummy_task(CoreTaskArgs()).task_id();
        CoreTaskArgs args;
        args.add_inout(t);
        args.set_dependencies(&id, 1);
        args.set_dependencies(nullptr, 0);
        args.set_dependencies(&id, 1);
        if (args.has_error || args.error_msg != nullptr) rt_report_fatal(1, "an error without a reason");
        switch (how) {
            case 0: args.set_dependencies(&id, 1); break;
            case 1: args.set_dependencies(nullptr, 1); break;
            case 2: args.dump(t, stranger); break;
            case 3: args.set_task_timing_slot(16); break;
        }
        if (!args.has_error || args.error_msg == nullptr) rt_report_fatal(1, "no error");
        rt_submit_aiv_task(0, args);
    }

    // A view that does not exist, of a tensor of two dims that is no row, in the way of number `how`.
    static void misuse_view(int64_t how, const ChipTensor& t) {
        uint32_t flat[1] = {static_cast<uint32_t>(t.numel())}, more[1] = {flat[0] + 1}, twice[2] = {1, 1};
        switch (how) {
            case 0: t.transpose(0, 2); break;
            case 1: t.permute(twice); break;
            case 2: t.slice(0, 0, t.shapes[0] + 1); break;
            case 3: t.slice(0, 0, 1, 0); break;
            case 4: t.reshape(more, 1); break;
            case 5: t.transpose(0, 1).reshape(flat, 1); break;
            case 6: alloc_tensors(TensorCreateInfo(t.shapes, 0)); break;
            case 7: alloc_tensors(TensorCreateInfo(t.shapes, 6)); break;
        }
    }

    // False at the end of the script or of a scope.
    bool step() {
        int64_t command = word();
        switch (command) {
            case 0:
            case 7: return false;
            case 1: submit(false); break;
            case 2: submit(true); break;
            case 3: {
                int64_t to = word(), from = word();
                uint32_t shape[5], offset[5];
                list(shape);
                list(offset);
                tensors[to] = tensors[from].view(shape, offset);
                break;
            }
            case 4: {
                int64_t to = word(), from = word(), a = word(), b = word();
                tensors[to] = tensors[from].transpose(static_cast<uint32_t>(a), static_cast<uint32_t>(b));
                break;
            }
            case 5: {
                int64_t to = word(), from = word();
                uint32_t shape[5];
                uint32_t n = list(shape);
                tensors[to] = tensors[from].reshape(shape, n);
                break;
            }
            case 6: {
                PTO2ScopeMode mode = static_cast<PTO2ScopeMode>(word());
                PTO2_SCOPE(mode) {
                    while (step()) {
                    }
                }
                break;
            }
            case 8: {  // allocate, in a scope of its own: the handle must keep the buffer
                int64_t to = word();
                uint32_t shape[5];
                uint32_t n = list(shape);
                TensorCreateInfo info(shape, n, DataType::UINT32, word() != 0);
                if (word() != 0) info.set_initial_value(word());
                else word();
                PTO2_SCOPE() {
                    TaskOutputTensors made = alloc_tensors(info);
                    tensors[to] = made.get_ref(0);
                }
                break;
            }
            case 9: tensors[word()] = ChipTensor(); break;
            case 10: {  // element 0 of a tensor into an element of another
                int64_t from = word(), to = word(), index = word();
                uint32_t zero[5] = {};
                uint32_t place[1] = {static_cast<uint32_t>(index)};
                uint32_t value = get_tensor_data<uint32_t>(tensors[from], tensors[from].ndims, zero);
                set_tensor_data<uint32_t>(tensors[to], 1, place, value);
                break;
            }
            case 11: {  // a constant into element 0
                int64_t to = word();
                uint32_t zero[5] = {};
                set_tensor_data<uint32_t>(tensors[to], tensors[to].ndims, zero,
                                          static_cast<uint32_t>(word()));
                break;
            }
            case 12: {  // predicate of the next submit, on element 0
                predicate = CoreTaskPredicate();
                predicate.operand.tensor = &tensors[word()];
                predicate.operand.ndims = predicate.operand.tensor->ndims;
                predicate.op = static_cast<PredicateOp>(word());
                predicate.target = word();
                has_predicate = true;
                break;
            }
            case 13: rt_report_fatal(7, "the script gives up after %d", static_cast<int>(word())); break;
            case 14: {  // a long chain: n tasks on one tensor with one kernel
                int64_t n = word(), reg = word();
                for (int64_t i = 0; i < n; ++i) {
                    CoreTaskArgs args;
                    args.add_inout(tensors[reg]);
                    args.add_scalar((uint64_t{0xABCD0001} << 32) | 8);
                    rt_submit_aiv_task(0, args);
                }
                break;
            }
            case 15: ids[word()] = PTO2TaskId::invalid(); break;
            case 16: {
                int64_t how = word();
                misuse(how, tensors[word()]);
                break;
            }
            case 17: {
                int64_t how = word();
                misuse_view(how, tensors[word()]);
                break;
            }
            default: rt_report_fatal(1, "no such command: %d", static_cast<int>(command)); return false;
        }
        return true;
    }
};

// Compiled, never run: what hand-written orchestrations may use, as they write it.
[[maybe_unused]] void every_name(const ChipTensor& x) {
    uint32_t shape[2] = {4, 4}, offset[2] = {0, 0}, order[2] = {1, 0}, flat[1] = {16};
    TensorCreateInfo floats(shape, 2), ints(shape, 2, DataType::INT32, /*manual_dep=*/true);
    floats.set_initial_value(0);
    TensorCreateInfo both[2] = {floats, ints};
    CoreTaskArgs outputs;
    outputs.add_output(floats, ints);
    TaskOutputTensors a = alloc_tensors(floats, ints), b = alloc_tensors(both, 2), c = alloc_tensors(outputs);
    const ChipTensor &t = a.get_ref(0), &u = b.get_ref(1);
    CoreTaskArgs args;
    args.add_input(x, t);
    args.add_inout(u, c.get_ref(0));
    args.add_no_dep(t);
    args.add_output(t, u);
    args.add_scalar(1, 2.5f, true, static_cast<int8_t>(-1), to_u64(from_u64<double>(7)));
    int32_t words[2] = {-1, 2};
    args.add_scalars_i32(words, 2);
    PTO2TaskId ids[2] = {a.task_id(), b.task_id()};
    args.set_dependencies(ids, 2);
    args.launch_spec.set_core_num(1);
    args.set_allow_early_resolve(true);
    args.set_task_timing_slot(3);
    args.dump(t, u);
    args.dump();
    if (args.has_error) LOG_ERROR("%s", args.error_msg);
    MixedKernels lanes = {INVALID_KERNEL_ID, 0, INVALID_KERNEL_ID};
    TaskOutputTensors made = rt_submit_task(lanes, args);
    if (made.empty() || made.size() == 2 || made.task_id() == ids[0]) LOG_WARN("warn");
    rt_submit_aic_task(0, args);
    uint8_t kinds[2] = {DEP_WAIT, DEP_RETAIN};
    CoreTaskArgs gate;
    gate.set_dependencies_with_kinds(ids, kinds, 2);
    rt_submit_dummy_task(gate);
    ChipTensor view = t.view(shape, offset, true).transpose(0, 1).permute(order).slice(0, 0, 4, 2);
    view = t.reshape(flat, 1);
    LOG_INFO("%d %d", static_cast<int>(view.numel()), static_cast<int>(view.is_contiguous));
    LOG_DEBUG("%d", view.manual_dep && view.owner_task_id.is_valid() && view.strides[4] && view.start_offset);
    LOG_TIMING("%d", rt_available_cluster_count() + rt_available_aiv_count());
    rt_scope_begin();
    rt_scope_end();
    rt_orchestration_done();
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) PTO2OrchestrationConfig
aicpu_orchestration_config(const ChipTaskArgs& args) {
    return PTO2OrchestrationConfig{
        .expected_arg_count = args.tensor_count() + 1,
    };
}

__attribute__((visibility("default"))) void aicpu_orchestration_entry(const ChipTaskArgs& args) {
    Machine* machine = new Machine;
    machine->next = reinterpret_cast<const int64_t*>(args.tensor(0).ref().buffer.addr);
    for (int32_t i = 1; i < args.tensor_count(); ++i) machine->tensors[i - 1] = args.tensor(i).ref();
    while (machine->step()) {
    }
    delete machine;
}
}

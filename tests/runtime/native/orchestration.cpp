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
                uint32_t shape[1] = {static_cast<uint32_t>(word())};
                infos[n_infos] = new TensorCreateInfo(shape, 1, DataType::UINT32);
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
            default: rt_report_fatal(1, "no such command: %d", static_cast<int>(command)); return false;
        }
        return true;
    }
};

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

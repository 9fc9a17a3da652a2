// The whole runtime under the thread sanitizer: plain, unsynchronised accesses in kernels, so a missing edge
// is a race. Prints "ok" when all results are right; the sanitizer makes the exit status non-zero when it
// finds a race.
#include <thread>

#include "../../../src/pypto/runtime/native/src/runtime.cpp"

namespace {

const PyptoTensorDescriptor& tensor(int64_t* args, int i) {
    return *reinterpret_cast<const PyptoTensorDescriptor*>(args[i]);
}

float* data(const PyptoTensorDescriptor& t) { return reinterpret_cast<float*>(t.addr) + t.start_offset; }

// out += in + 1, element by element
void accumulate(int64_t* args) {
    const auto& in = tensor(args, 0);
    const auto& out = tensor(args, 1);
    for (uint32_t k = 0; k < out.shapes[0]; ++k) {
        data(out)[k * out.strides[0]] += data(in)[k % in.shapes[0] * in.strides[0]] + 1;
    }
}

// one element per block
void mark_block(int64_t* args) {
    auto* dispatch = reinterpret_cast<const PyptoDispatchContext*>(args[PYPTO_DISPATCH_SLOT]);
    data(tensor(args, 0))[dispatch->block_idx] += 1;
}

void touch(int64_t* args) {
    auto* core = reinterpret_cast<const PyptoCoreContext*>(args[PYPTO_CORE_SLOT]);
    data(tensor(args, 0))[core->sub_block_id] += 1;
}

void fail_always(int64_t* args) {
    auto* core = reinterpret_cast<const PyptoCoreContext*>(args[PYPTO_CORE_SLOT]);
    core->fail(core, "on purpose");
}

// The cube lane sends 20 numbers to both vector lanes and gets them back; they add what they find at their own place.
// Two slots in each direction, and an event from one side to the other at the end.
void exchange(int64_t* args) {
    auto* core = reinterpret_cast<const PyptoCoreContext*>(args[PYPTO_CORE_SLOT]);
    const PyptoLaneApi& lanes = *core->lanes;
    lanes.open(core, 0, 3, 8, 2, "open");
    float* out = data(tensor(args, 0));
    float sum = 0;
    for (int round = 0; round < 20; ++round) {
        for (int vector = 0; vector < 2; ++vector) {
            if (core->slot == 0) {
                *static_cast<float*>(lanes.reserve(core, 0, 0, vector, 8, "push")) = static_cast<float>(round);
                lanes.push(core, 0, 0, vector);
                sum += *static_cast<const float*>(lanes.front(core, 0, 1, vector, "pop"));
                lanes.pop(core, 0, 1, vector);
            } else if (core->sub_block_id == vector) {
                float got = *static_cast<const float*>(lanes.front(core, 0, 0, vector, "pop"));
                lanes.pop(core, 0, 0, vector);
                *static_cast<float*>(lanes.reserve(core, 0, 1, vector, 8, "push")) = got + out[vector];
                lanes.push(core, 0, 1, vector);
            }
        }
    }
    if (core->slot != 0) lanes.set_event(core, 3, 2, -1, "set");
    if (core->slot == 0) lanes.wait_event(core, 3, -1, "wait");
    if (core->slot == 0) out[0] = sum / 1000;
}

ChipTensor window(const ChipTensor& t, uint32_t offset, uint32_t extent) {
    uint32_t shape[1] = {extent};
    uint32_t start[1] = {offset};
    return t.view(shape, start);
}

void orchestrate(const ChipTaskArgs& args) {
    const ChipTensor& x = args.tensor(0).ref();
    const ChipTensor& y = args.tensor(1).ref();
    uint32_t seed = static_cast<uint32_t>(args.scalar(0));
    auto random = [&](uint32_t below) { return (seed = seed * 1664525u + 1013904223u) / 65536u % below; };
    for (int i = 0; i < 2000; ++i) {
        ChipTensor from = window(x, random(48), 16);
        ChipTensor to = window(i % 7 == 0 ? x : y, random(48), 16);
        switch (random(9)) {
            case 0: {  // through a temporary that nobody keeps
                uint32_t shape[1] = {16};
                TensorCreateInfo info(shape, 1);
                info.set_initial_value(1);
                TaskOutputTensors made = alloc_tensors(info);
                const ChipTensor& temporary = made.get_ref(0);
                CoreTaskArgs first, second;
                first.add_input(from);
                first.add_inout(temporary);
                rt_submit_aiv_task(0, first);
                second.add_input(temporary);
                second.add_inout(to);
                rt_submit_aiv_task(0, second);
                break;
            }
            case 1: {
                CoreTaskArgs blocks;
                blocks.add_inout(y);
                blocks.launch_spec.set_block_num(64);
                blocks.launch_spec.set_require_sync_start(false);
                rt_submit_aiv_task(1, blocks);
                break;
            }
            case 2: {
                CoreTaskArgs pair;
                pair.add_inout(to);
                rt_submit_task(MixedKernels{INVALID_KERNEL_ID, 2, 2}, pair);
                break;
            }
            case 3: {
                uint32_t index[1] = {random(64)};
                if (i % 5 == 0) set_tensor_data<float>(y, 1, index, get_tensor_data<float>(x, 1, index));
                break;
            }
            case 4: {
                if (i % 8 != 0) break;
                CoreTaskArgs lanes;
                lanes.add_inout(to);
                rt_submit_task(MixedKernels{4, 4, 4}, lanes);
                break;
            }
            default: {
                CoreTaskArgs plain;
                plain.add_input(from);
                plain.add_inout(to);
                rt_submit_aiv_task(0, plain);
            }
        }
    }
    if (seed % 5 == 0) {
        CoreTaskArgs wrong;
        rt_submit_aiv_task(3, wrong);
    }
}

int failures = 0;

void call(pypto::Program* program, int32_t workers, uint64_t seed) {
    std::vector<float> serial_x, serial_y;
    for (int32_t threads : {1, workers}) {
        std::vector<float> x(64, 1), y(64, 2);
        PyptoTensorDescriptor layout{0, 256, 0, {64}, {1}, 1, DataType::FLOAT32};
        PyptoTensorDescriptor layouts[2] = {layout, layout};
        uint64_t addresses[2] = {reinterpret_cast<uint64_t>(x.data()), reinterpret_cast<uint64_t>(y.data())};
        pypto::RunOptions options{threads, 64, 24, 48, 0, 5, nullptr};
        char error[256];
        int32_t failed = pypto_run(program, layouts, addresses, 2, &seed, 1, &options, 0, error, sizeof error);
        if (failed != 0) return;  // some tasks did not run
        if (threads == 1) {
            serial_x = x;
            serial_y = y;
        } else if (serial_x != x || serial_y != y) {
            __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
        }
    }
}

}  // namespace

int main() {
    pypto::Program* program =
        pypto_program_new(reinterpret_cast<void*>(&orchestrate), nullptr, &pypto_bind_runtime, 1 << 20);
    void (*kernels[])(int64_t*) = {accumulate, mark_block, touch, fail_always, exchange};
    for (int32_t i = 0; i < 5; ++i) {
        pypto_program_add_kernel(program, i, reinterpret_cast<void*>(kernels[i]), 256, 0, "kernel");
    }
    std::vector<std::thread> callers;
    for (uint64_t caller = 0; caller < 3; ++caller) {
        callers.emplace_back([=] {
            for (uint64_t round = 0; round < 3; ++round) call(program, 4, caller * 100 + round);
        });
    }
    for (auto& thread : callers) thread.join();
    pypto_shutdown();
    pypto_program_free(program);
    puts(failures == 0 ? "ok" : "results differ");
    return failures;
}

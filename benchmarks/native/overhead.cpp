// Submits many tasks of an empty kernel: scalars are the number of tasks and the shape of the graph.
#include "pto_orchestration_api.h"

enum Shape { CHAIN = 0, FAN_OUT = 1, INDEPENDENT = 2, WINDOWS = 3, TEMPORARIES = 4 };

extern "C" {

__attribute__((visibility("default"))) PTO2OrchestrationConfig
aicpu_orchestration_config(const ChipTaskArgs&) {
    return PTO2OrchestrationConfig{
        .expected_arg_count = 3,
    };
}

__attribute__((visibility("default"))) void aicpu_orchestration_entry(const ChipTaskArgs& args) {
    const ChipTensor& x = args.tensor(0).ref();
    int64_t tasks = from_u64<int64_t>(args.scalar(0));
    Shape shape = static_cast<Shape>(args.scalar(1));
    for (int64_t i = 0; i < tasks; ++i) {
        CoreTaskArgs params;
        switch (shape) {
            case CHAIN: {  // each task updates the same tensor
                params.add_inout(x);
                rt_submit_aiv_task(0, params);
                break;
            }
            case FAN_OUT: {  // one writer, then readers
                if (i == 0) params.add_inout(x);
                else params.add_input(x);
                rt_submit_aiv_task(0, params);
                break;
            }
            case INDEPENDENT: rt_submit_aiv_task(0, params); break;
            case WINDOWS: {  // a thousand disjoint windows of one tensor in turn
                uint32_t extent[1] = {16};
                uint32_t offset[1] = {static_cast<uint32_t>(i % 1000) * 16};
                ChipTensor window = x.view(extent, offset);
                params.add_inout(window);
                rt_submit_aiv_task(0, params);
                break;
            }
            case TEMPORARIES: {  // every second task reads the buffer that the one before has made
                uint32_t extent[1] = {1024};
                TensorCreateInfo info(extent, 1);
                params.add_output(info);
                TaskOutputTensors made = rt_submit_aiv_task(0, params);
                const ChipTensor& temporary = made.get_ref(0);
                CoreTaskArgs reader;
                reader.add_input(temporary);
                rt_submit_aiv_task(0, reader);
                ++i;
                break;
            }
        }
    }
}
}

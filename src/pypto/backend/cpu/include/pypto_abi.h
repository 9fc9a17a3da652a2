// The binary interface between the task runtime and a kernel.
//
// Everything that crosses the boundary is plain data laid out here, so that a kernel needs no other header of the
// runtime and can be compiled without the C++ standard library.
#pragma once

#include <stdint.h>

// Element types as the runtime names them. The value is part of the binary interface.
enum class DataType : uint32_t {
    FLOAT32 = 0, FLOAT16 = 1, BFLOAT16 = 2, INT8 = 3, INT16 = 4, INT32 = 5, INT64 = 6,
    UINT8 = 7, UINT16 = 8, UINT32 = 9, UINT64 = 10, FP8E4M3FN = 11, FP8E5M2 = 12, FP8E8M0 = 13, FP4E2M1 = 14,
    BOOL = 15, UNKNOWN = 255,
};

constexpr int PYPTO_MAX_DIMS = 5;
constexpr int PYPTO_MAX_TENSORS = 32;   // per kernel payload
constexpr int PYPTO_MAX_SCALARS = 16;   // per kernel payload
constexpr int PYPTO_DISPATCH_SLOT = 48; // args[48]: const PyptoDispatchContext*
constexpr int PYPTO_CORE_SLOT = 49;     // args[49]: const PyptoCoreContext*
constexpr int PYPTO_KERNEL_SLOTS = 50;

// What a kernel reads of a tensor: the element at index (i0, i1, ...) lives at
// addr + (start_offset + sum(i_k * strides[k])) * sizeof(element). Strides and offsets count elements.
struct PyptoTensorDescriptor {
    uint64_t addr;
    uint64_t size;  // bytes of the whole buffer
    uint64_t start_offset;
    uint32_t shapes[PYPTO_MAX_DIMS];
    uint32_t strides[PYPTO_MAX_DIMS];
    uint32_t ndims;
    DataType dtype;
};

// Which block of a dispatch runs.
struct PyptoDispatchContext {
    int32_t block_idx;
    int32_t block_num;
};

// What the executing lane owns. `fail` never returns to the kernel; `detail` names the operation and the DSL line.
struct PyptoCoreContext {
    int32_t sub_block_id;
    int32_t checked;      // non-zero: kernels verify every access
    void* workspace;      // at least kernel_workspace_bytes bytes, 64-byte aligned
    void (*fail)(const PyptoCoreContext* self, const char* detail);
    void* lane;           // the runtime's own
};

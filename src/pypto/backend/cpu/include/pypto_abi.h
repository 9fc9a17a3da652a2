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

struct PyptoCoreContext;

// How the lanes that run at the same time work together. `detail` names the operation and the DSL line. What has to wait
// gives up, and does not return to the kernel, when the run is over or when nobody is left who could end the wait.
//
// Tiles travel through queues: one per direction, vector lane (0 or 1) and pipe id, of which each end belongs to one
// lane of the block.
struct PyptoLaneApi {
    // Declares how many slots of how many bytes the queues of a pipe have. Bit 0 of `directions`: cube to vector, bit 1:
    // vector to cube. A queue that nobody declares is unbounded.
    void (*open)(const PyptoCoreContext* self, int32_t pipe, int32_t directions, uint64_t slot_bytes, int32_t slots,
                 const char* detail);
    // A free slot, as soon as there is one; `push` hands it over.
    void* (*reserve)(const PyptoCoreContext* self, int32_t pipe, int32_t to_cube, int32_t vector_lane, uint64_t bytes,
                     const char* detail);
    void (*push)(const PyptoCoreContext* self, int32_t pipe, int32_t to_cube, int32_t vector_lane);
    // The oldest slot that was handed over, as soon as there is one; `pop` gives it back.
    const void* (*front)(const PyptoCoreContext* self, int32_t pipe, int32_t to_cube, int32_t vector_lane,
                         const char* detail);
    void (*pop)(const PyptoCoreContext* self, int32_t pipe, int32_t to_cube, int32_t vector_lane);
    // Events are counted. `scope` says who takes part: 0 all lanes of this kind in all blocks that started together, 1
    // the vector lanes of the block, 2 the cube lane and the vector lanes of the block, one signalling the other.
    // `kind`, if not negative, is the kind of lane (0 vector, 1 cube) that the call is meant for.
    void (*set_event)(const PyptoCoreContext* self, int32_t event, int32_t scope, int32_t kind, const char* detail);
    void (*wait_event)(const PyptoCoreContext* self, int32_t event, int32_t kind, const char* detail);
    // Returns when `participants` lanes (0: all) of the kinds in the mask (bit 0 vector, bit 1 cube) have come.
    void (*barrier)(const PyptoCoreContext* self, int32_t kinds, int32_t participants, const char* detail);
};

// What the executing lane owns. `fail` never returns to the kernel; `detail` names the operation and the DSL line.
struct PyptoCoreContext {
    int32_t sub_block_id;
    int32_t checked;      // non-zero: kernels verify every access
    void* workspace;      // at least kernel_workspace_bytes bytes, 64-byte aligned
    void (*fail)(const PyptoCoreContext* self, const char* detail);
    void* lane;           // the runtime's own
    const int32_t* cancelled;  // non-zero once the run is over: a kernel that waits for another must call `fail`
    const PyptoLaneApi* lanes;
    int32_t slot;          // 0 the cube lane, 1 and 2 the vector lanes
    int32_t cube_lanes;    // of this block
    int32_t vector_lanes;  // of this block
};

// What lanes of one kernel do together: send tiles to one another, signal, meet.
//
// A tile is copied into a slot of a queue and out of it again. In the slot a head of 64 bytes says what follows: the
// elements of a rectangle, packed, and how much of it is valid.
#pragma once

#include "pypto_kernel.h"

namespace pypto {

struct TileHead {
    int64_t rows, cols, valid_rows, valid_cols;
    int64_t element_bytes;
};
constexpr int64_t TILE_HEAD_BYTES = 64;

// One of the queues of a pipe, seen from a kernel.
struct Queue {
    const PyptoCoreContext* core;
    int32_t pipe;
    int32_t to_cube;
    int32_t vector_lane;
    const char* detail;
};

PYPTO_INLINE Queue queue(const Kernel& kernel, int32_t pipe, bool to_cube, int64_t vector_lane, const char* detail) {
    return {kernel.core(), pipe, to_cube, static_cast<int32_t>(vector_lane), detail};
}

// Fails with a reason behind the name of the operation.
__attribute__((noinline, cold)) inline void refuse(const PyptoCoreContext* core, const char* detail, const char* reason) {
    Message message;
    core->fail(core, message.add(detail).add(": ").add(reason).text());
}

// The rectangle of `rows` x `cols` elements at (row, col) of a tile; what overhangs the tile reads as zero.
template <typename T>
__attribute__((noinline)) void send(const Queue& to, const Folded<T>& tile, int64_t row, int64_t col, int64_t rows,
                                    int64_t cols, int64_t valid_rows, int64_t valid_cols) {
    const uint64_t bytes = static_cast<uint64_t>(rows * cols) * sizeof(T);
    void* slot = to.core->lanes->reserve(to.core, to.pipe, to.to_cube, to.vector_lane, bytes, to.detail);
    *static_cast<TileHead*>(slot) = {rows, cols, clip(valid_rows, 0, rows), clip(valid_cols, 0, cols), sizeof(T)};
    T* data = reinterpret_cast<T*>(static_cast<char*>(slot) + TILE_HEAD_BYTES);
    const int64_t present_rows = clip(tile.rows - row, 0, rows);
    const int64_t present_cols = clip(tile.cols - col, 0, cols);
    for (int64_t i = 0; i < rows; ++i) {
        const int64_t count = i < present_rows ? present_cols : 0;
        copy_row(data + i * cols, 1, tile.data + (row + i) * tile.row_stride + col * tile.col_stride, tile.col_stride,
                 count);
        zero_row(data + i * cols + count, 1, cols - count);
    }
    to.core->lanes->push(to.core, to.pipe, to.to_cube, to.vector_lane);
}

// Copies the oldest tile of a queue to (row, col) of `tile` and says what it was.
template <typename T>
__attribute__((noinline)) TileHead receive(const Queue& from, const Folded<T>& tile, int64_t row, int64_t col) {
    const void* slot = from.core->lanes->front(from.core, from.pipe, from.to_cube, from.vector_lane, from.detail);
    const TileHead head = *static_cast<const TileHead*>(slot);
    if (head.element_bytes != sizeof(T) || row + head.rows > tile.rows || col + head.cols > tile.cols) {
        refuse(from.core, from.detail, "the tile that was pushed has another size or element type");
    }
    const T* data = reinterpret_cast<const T*>(static_cast<const char*>(slot) + TILE_HEAD_BYTES);
    for (int64_t i = 0; i < head.rows; ++i) {
        copy_row(tile.data + (row + i) * tile.row_stride + col * tile.col_stride, tile.col_stride,
                 data + i * head.cols, 1, head.cols);
    }
    from.core->lanes->pop(from.core, from.pipe, from.to_cube, from.vector_lane);
    return head;
}

// The elements at and beyond (rows, cols) become zero, so that a tile that is smaller than expected shows no old data.
template <typename T, int R, int C, int RS, int CS>
PYPTO_INLINE void take(Tile<T, R, C, RS, CS>& tile, int64_t rows, int64_t cols, int64_t valid_rows,
                       int64_t valid_cols) {
    if (rows < R || cols < C) clear_outside(tile, rows, cols);
    tile.valid_rows = valid_rows;
    tile.valid_cols = valid_cols;
}

// How the two vector lanes share a tile: along no axis (each gets all of it), along the rows, or along the columns.
enum class Split { NONE, ROWS, COLS };

// From the cube lane. Lane L gets the half that starts at L * stride (0: half the extent).
template <Split S, typename T, int R, int C, int RS, int CS>
PYPTO_INLINE void push_to_vector(const Kernel& kernel, const Tile<T, R, C, RS, CS>& tile, int32_t pipe, int64_t stride,
                                 const char* detail) {
    const int32_t lanes = kernel.core()->vector_lanes;
    if (lanes < (S == Split::NONE ? 1 : 2)) {
        refuse(kernel.core(), detail,
               S == Split::NONE ? "the task has no vector lane"
                                : "a split needs both vector lanes; declare the AIV function with dual_aiv_dispatch=True");
    }
    constexpr int64_t HALF = S == Split::NONE ? 0 : ((S == Split::ROWS ? R : C) + 1) / 2;
    if (stride == 0) stride = HALF;
    for (int64_t lane = 0; lane < lanes; ++lane) {
        const Queue to = queue(kernel, pipe, false, lane, detail);
        const int64_t at = lane * stride;
        if constexpr (S == Split::NONE) {
            send(to, folded(tile), 0, 0, R, C, tile.valid_rows, tile.valid_cols);
        } else if constexpr (S == Split::ROWS) {
            const int64_t valid = lane == 0 ? least(tile.valid_rows, stride) : tile.valid_rows - stride;
            send(to, folded(tile), at, 0, HALF, C, valid, tile.valid_cols);
        } else {
            const int64_t valid = lane == 0 ? least(tile.valid_cols, stride) : tile.valid_cols - stride;
            send(to, folded(tile), 0, at, R, HALF, tile.valid_rows, valid);
        }
    }
}

template <typename T, int R, int C, int RS, int CS>
PYPTO_INLINE void pop_from_cube(const Kernel& kernel, Tile<T, R, C, RS, CS>& tile, int32_t pipe, const char* detail) {
    const TileHead head = receive(queue(kernel, pipe, false, kernel.sub_block_id(), detail), folded(tile), 0, 0);
    take(tile, head.rows, head.cols, head.valid_rows, head.valid_cols);
}

// From a vector lane. Without a split the cube lane takes what lane 0 sends.
template <Split S, typename T, int R, int C, int RS, int CS>
PYPTO_INLINE void push_to_cube(const Kernel& kernel, const Tile<T, R, C, RS, CS>& tile, int32_t pipe,
                               const char* detail) {
    if (S == Split::NONE && kernel.sub_block_id() != 0) return;
    send(queue(kernel, pipe, true, kernel.sub_block_id(), detail), folded(tile), 0, 0, R, C, tile.valid_rows,
         tile.valid_cols);
}

template <Split S, typename T, int R, int C, int RS, int CS>
PYPTO_INLINE void pop_from_vector(const Kernel& kernel, Tile<T, R, C, RS, CS>& tile, int32_t pipe,
                                  const char* detail) {
    const TileHead first = receive(queue(kernel, pipe, true, 0, detail), folded(tile), 0, 0);
    if constexpr (S == Split::NONE) {
        take(tile, first.rows, first.cols, first.valid_rows, first.valid_cols);
    } else if constexpr (S == Split::ROWS) {
        const TileHead second = receive(queue(kernel, pipe, true, 1, detail), folded(tile), first.rows, 0);
        take(tile, first.rows + second.rows, least(first.cols, second.cols), first.valid_rows + second.valid_rows,
             most(first.valid_cols, second.valid_cols));
    } else {
        const TileHead second = receive(queue(kernel, pipe, true, 1, detail), folded(tile), 0, first.cols);
        take(tile, least(first.rows, second.rows), first.cols + second.cols, most(first.valid_rows, second.valid_rows),
             first.valid_cols + second.valid_cols);
    }
}

// The half of a tile that belongs to a vector lane; what overhangs the tile is zero and not valid.
template <Split S, typename T, int R, int C, int RS, int CS, int R2, int C2, int RS2, int CS2>
PYPTO_INLINE void shard(const Tile<T, R, C, RS, CS>& out, const Tile<T, R2, C2, RS2, CS2>& tile, int64_t lane,
                        int64_t stride) {
    constexpr bool BY_ROWS = S == Split::ROWS;
    constexpr bool BY_COLS = S == Split::COLS;
    if (stride == 0) stride = BY_ROWS ? R : C;
    const int64_t row = BY_ROWS ? lane * stride : 0;
    const int64_t col = BY_COLS ? lane * stride : 0;
    const int64_t rows = clip(R2 - row, 0, R);
    const int64_t cols = clip(C2 - col, 0, C);
    for (int64_t i = 0; i < rows; ++i) {
        copy_row(out.row(i), CS, tile.row(row + i) + col * CS2, CS2, cols);
    }
    if (rows < R || cols < C) clear_outside(out, rows, cols);
}

// ---- pipes, events, barriers ---------------------------------------------------------------------------------------

PYPTO_INLINE void open_pipe(const Kernel& kernel, int32_t pipe, int32_t directions, uint64_t slot_bytes, int32_t slots,
                            const char* detail) {
    kernel.core()->lanes->open(kernel.core(), pipe, directions, slot_bytes, slots, detail);
}

PYPTO_INLINE void set_event(const Kernel& kernel, int64_t event, int32_t scope, int32_t kind, const char* detail) {
    kernel.core()->lanes->set_event(kernel.core(), static_cast<int32_t>(event), scope, kind, detail);
}

PYPTO_INLINE void wait_event(const Kernel& kernel, int64_t event, int32_t kind, const char* detail) {
    kernel.core()->lanes->wait_event(kernel.core(), static_cast<int32_t>(event), kind, detail);
}

PYPTO_INLINE void barrier(const Kernel& kernel, int32_t kinds, int64_t participants, const char* detail) {
    kernel.core()->lanes->barrier(kernel.core(), kinds, static_cast<int32_t>(participants), detail);
}

}  // namespace pypto

// What every generated kernel needs: its arguments, tensors, tiles, transfers between them, and elementwise evaluation.
//
// A tile is a rectangle of elements in the kernel's workspace. Its physical extents and strides are template parameters,
// so that loops are compiled for them; how much of it holds real data (the valid rectangle, from the origin) is a
// run-time property. Tiles of higher rank are folded to two dimensions: all leading dimensions become rows.
// Elements outside the valid rectangle are zero after a load, so that results are deterministic; no operation lets
// them influence valid ones.
#pragma once

#include "pypto_abi.h"
#include "pypto_number.h"

namespace pypto {

// ---- tiles -------------------------------------------------------------------------------------------------------

template <typename T, int R, int C, int RS = C, int CS = 1>
struct Tile {
    using Element = T;
    static constexpr int ROWS = R;
    static constexpr int COLS = C;
    static constexpr int ROW_STRIDE = RS;
    static constexpr int COL_STRIDE = CS;
    static constexpr bool IS_PACKED = CS == 1 && (RS == C || R == 1);

    T* data;
    int64_t valid_rows;
    int64_t valid_cols;

    PYPTO_INLINE T& at(int64_t row, int64_t col) const { return data[row * RS + col * CS]; }
    PYPTO_INLINE T* row(int64_t r) const { return data + r * RS; }
};

// A tile at any address, valid in full.
template <typename T, int R, int C>
PYPTO_INLINE Tile<T, R, C> tile_at(void* data) {
    return {static_cast<T*>(data), R, C};
}

template <typename T, int R, int C, int RS, int CS>
PYPTO_INLINE Tile<T, R, C, RS, CS> with_valid(Tile<T, R, C, RS, CS> tile, int64_t rows, int64_t cols) {
    tile.valid_rows = rows;
    tile.valid_cols = cols;
    return tile;
}

template <typename Tile>
PYPTO_INLINE bool is_full(const Tile& tile) {
    return tile.valid_rows >= Tile::ROWS && tile.valid_cols >= Tile::COLS;
}

// ---- tensors and arguments ---------------------------------------------------------------------------------------

template <typename T, int N>
struct Tensor {
    using Element = T;
    static constexpr int RANK = N;

    T* data;
    int64_t shape[N > 0 ? N : 1];
    int64_t stride[N > 0 ? N : 1];
};

// One number per dimension: a position (`at`) or an extent (`box`).
template <int N>
struct Index {
    int64_t at[N > 0 ? N : 1];
};

template <typename... I>
PYPTO_INLINE Index<sizeof...(I)> at(I... index) {
    return {{static_cast<int64_t>(index)...}};
}
template <typename... I>
PYPTO_INLINE Index<sizeof...(I)> box(I... extent) {
    return {{static_cast<int64_t>(extent)...}};
}

// Text for people, put together without a library.
class Message {
public:
    Message& add(const char* part) {
        for (; *part != 0 && length_ < LIMIT; ++part) text_[length_++] = *part;
        return *this;
    }
    Message& add(int64_t value) {
        char digits[24];
        int first = sizeof digits - 1;
        digits[first] = 0;
        uint64_t left = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
        do digits[--first] = static_cast<char>('0' + left % 10);
        while ((left /= 10) != 0);
        if (value < 0) digits[--first] = '-';
        return add(digits + first);
    }
    const char* text() {
        text_[length_] = 0;
        return text_;
    }

private:
    static constexpr int LIMIT = 500;
    char text_[LIMIT + 1];
    int length_ = 0;
};

class Kernel {
public:
    explicit PYPTO_INLINE Kernel(const int64_t* args)
        : args_(args),
          dispatch_(reinterpret_cast<const PyptoDispatchContext*>(args[PYPTO_DISPATCH_SLOT])),
          core_(reinterpret_cast<const PyptoCoreContext*>(args[PYPTO_CORE_SLOT])) {}

    // Dimensions are matched from the right: a descriptor may have more leading unit dimensions than the parameter.
    template <typename T, int N>
    PYPTO_INLINE Tensor<T, N> tensor(int slot) const {
        Tensor<T, N> tensor;
        const auto* descriptor = reinterpret_cast<const PyptoTensorDescriptor*>(args_[slot]);
        tensor.data = reinterpret_cast<T*>(descriptor->addr) + descriptor->start_offset;
        read_extents(*descriptor, N, tensor.shape, tensor.stride);
        return tensor;
    }

    // Where the buffer of a tensor begins.
    PYPTO_INLINE const char* buffer(int slot) const {
        return reinterpret_cast<const char*>(reinterpret_cast<const PyptoTensorDescriptor*>(args_[slot])->addr);
    }

    // Scalars arrive as 64-bit patterns whose low bytes hold the value.
    template <typename T>
    PYPTO_INLINE Compute<T> scalar(int slot) const {
        T value;
        __builtin_memcpy(&value, &args_[slot], sizeof(T));
        return widen(value);
    }

    // The tile at a planned offset of the workspace, valid in full or in part.
    template <typename T, int R, int C>
    PYPTO_INLINE Tile<T, R, C> tile(uint64_t offset, int64_t valid_rows = R, int64_t valid_cols = C) const {
        return {reinterpret_cast<T*>(workspace(offset)), valid_rows, valid_cols};
    }

    PYPTO_INLINE char* workspace(uint64_t offset) const { return static_cast<char*>(core_->workspace) + offset; }
    PYPTO_INLINE int64_t block_idx() const { return dispatch_->block_idx; }
    PYPTO_INLINE int64_t block_num() const { return dispatch_->block_num; }
    PYPTO_INLINE int64_t sub_block_id() const { return core_->sub_block_id; }
    PYPTO_INLINE const PyptoCoreContext* core() const { return core_; }
    PYPTO_INLINE bool checked() const { return __builtin_expect(core_->checked != 0, 0); }

    // In checked mode: does the box lie inside the extents? `detail` names the operation and the line of the program.
    PYPTO_INLINE void check(int rank, const int64_t* shape, const int64_t* offset, const int64_t* extent,
                            const char* detail) const {
        if (checked()) check_box(rank, shape, offset, extent, detail);
    }

    __attribute__((noinline, cold)) void check_box(int rank, const int64_t* shape, const int64_t* offset,
                                                   const int64_t* extent, const char* detail) const {
        for (int i = 0; i < rank; ++i) {
            if (extent[i] <= 0) return;
        }
        for (int i = 0; i < rank; ++i) {
            if (offset[i] >= 0 && offset[i] + extent[i] <= shape[i]) continue;
            Message message;
            message.add(detail).add(": out of range: ").add(offset[i]);
            if (extent[i] > 1) message.add(" to ").add(offset[i] + extent[i] - 1);
            message.add(" in dimension ").add(i).add(" of extent ").add(shape[i]);
            core_->fail(core_, message.text());
        }
    }

    // Ends the run, checked or not, if something does not hold that the kernel was generated for.
    PYPTO_INLINE void require(bool holds, const char* detail, const char* reason) const {
        if (!holds) refuse(detail, reason);
    }

private:
    __attribute__((noinline, cold)) void refuse(const char* detail, const char* reason) const {
        Message message;
        core_->fail(core_, message.add(detail).add(": ").add(reason).text());
    }

    static __attribute__((noinline)) void read_extents(const PyptoTensorDescriptor& descriptor, int rank, int64_t* shape,
                                                       int64_t* stride) {
        const int extra = static_cast<int>(descriptor.ndims) - rank;
#pragma GCC unroll 1
        for (int i = 0; i < rank; ++i) {
            const bool given = extra + i >= 0;
            shape[i] = given ? descriptor.shapes[extra + i] : 1;
            stride[i] = given ? descriptor.strides[extra + i] : 0;
        }
    }

    const int64_t* args_;
    const PyptoDispatchContext* dispatch_;
    const PyptoCoreContext* core_;
};

// The same elements with the leading dimensions merged into one, or with unit dimensions in front.
template <int M, typename T, int N>
PYPTO_INLINE Tensor<T, M> with_rank(const Tensor<T, N>& tensor) {
    Tensor<T, M> result;
    result.data = tensor.data;
    for (int i = 0; i < M; ++i) {
        const int from = N - M + i;
        result.shape[i] = from >= 0 ? tensor.shape[from < 0 ? 0 : from] : 1;
        result.stride[i] = from >= 0 ? tensor.stride[from < 0 ? 0 : from] : 0;
    }
    for (int i = 0; i < N - M; ++i) result.shape[0] *= tensor.shape[i];
    return result;
}

// The same elements in row-major order under other extents; the memory must be packed.
template <typename T, int N, int M>
PYPTO_INLINE Tensor<T, M> packed_view(const Kernel& kernel, const Tensor<T, N>& tensor, const Index<M>& extents,
                                      const char* detail) {
    int64_t step = 1;
    for (int i = N - 1; i >= 0; --i) {
        kernel.require(tensor.shape[i] == 1 || tensor.stride[i] == step, detail, "the memory is not packed");
        step *= tensor.shape[i];
    }
    Tensor<T, M> result;
    result.data = tensor.data;
    step = 1;
    for (int i = M - 1; i >= 0; --i) {
        result.shape[i] = extents.at[i];
        result.stride[i] = step;
        step *= extents.at[i];
    }
    return result;
}

// The same elements with the last two dimensions swapped.
template <typename T, int N>
PYPTO_INLINE Tensor<T, N> swapped_view(const Tensor<T, N>& tensor) {
    static_assert(N >= 2, "two dimensions are swapped");
    Tensor<T, N> result = tensor;
    result.shape[N - 2] = tensor.shape[N - 1];
    result.shape[N - 1] = tensor.shape[N - 2];
    result.stride[N - 2] = tensor.stride[N - 1];
    result.stride[N - 1] = tensor.stride[N - 2];
    return result;
}

// ---- transfers between tensors and tiles -------------------------------------------------------------------------

PYPTO_INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
PYPTO_INLINE int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
PYPTO_INLINE int64_t clip(int64_t value, int64_t low, int64_t high) { return most(low, least(value, high)); }

template <typename To, typename From>
PYPTO_INLINE void copy_row(To* to, int64_t to_stride, From* from, int64_t from_stride, int64_t count) {
    if (to_stride == 1 && from_stride == 1) {
        if constexpr (Same<To, Plain<From>>::VALUE) {
            __builtin_memcpy(static_cast<void*>(to), from, static_cast<uint64_t>(count) * sizeof(To));
        } else {
            PYPTO_SIMD
            for (int64_t j = 0; j < count; ++j) to[j] = convert<To>(Plain<From>(from[j]));
        }
    } else {
        for (int64_t j = 0; j < count; ++j) {
            PYPTO_SCALAR_LOOP;
            to[j * to_stride] = convert<To>(Plain<From>(from[j * from_stride]));
        }
    }
}

template <typename T>
PYPTO_INLINE void zero_row(T* to, int64_t stride, int64_t count) {
    if (stride == 1) {
        __builtin_memset(static_cast<void*>(to), 0, static_cast<uint64_t>(most(count, 0)) * sizeof(T));
    } else {
        for (int64_t j = 0; j < count; ++j) {
            PYPTO_SCALAR_LOOP;
            __builtin_memset(static_cast<void*>(to + j * stride), 0, sizeof(T));
        }
    }
}

// Everything outside the first `rows` x `cols` elements becomes zero.
template <typename T, int R, int C, int RS, int CS>
PYPTO_INLINE void clear_outside(const Tile<T, R, C, RS, CS>& tile, int64_t rows, int64_t cols) {
    if (cols < C) {
        for (int64_t i = 0; i < rows; ++i) zero_row(tile.row(i) + cols * CS, CS, C - cols);
    }
    for (int64_t i = most(rows, 0); i < R; ++i) zero_row(tile.row(i), CS, C);
}

// Loads and stores are functions over run-time extents, so that a kernel compiles each of them once per pair of types.

// One side of a transfer: where the window begins and the strides of its dimensions.
template <typename T>
struct Side {
    T* data;
    int64_t stride[PYPTO_MAX_DIMS];
};

// to[...] := from[...] for a box of `count` elements per dimension. A box without dimensions is one element.
template <typename To, typename From>
__attribute__((noinline)) void copy_box(int rank, const int64_t* count, const Side<To>& to, const Side<From>& from) {
    if (rank == 0) {
        copy_row(to.data, 1, from.data, 1, 1);
        return;
    }
    const int last = rank - 1;
    int64_t rows = 1;
#pragma GCC unroll 1
    for (int i = 0; i < last; ++i) rows *= count[i];
    int64_t index[PYPTO_MAX_DIMS] = {};
    To* to_row = to.data;
    From* from_row = from.data;
    for (int64_t row = 0; row < rows; ++row) {
        PYPTO_SCALAR_LOOP;
        copy_row(to_row, to.stride[last], from_row, from.stride[last], count[last]);
#pragma GCC unroll 1
        for (int i = last - 1; i >= 0; --i) {  // next row: count up, with carry
            to_row += to.stride[i];
            from_row += from.stride[i];
            if (++index[i] < count[i]) break;
            to_row -= index[i] * to.stride[i];
            from_row -= index[i] * from.stride[i];
            index[i] = 0;
        }
    }
}

// The part of a window that exists in the tensor: per dimension its first index inside the window, and its extent.
struct Overlap {
    int64_t begin[PYPTO_MAX_DIMS];
    int64_t count[PYPTO_MAX_DIMS];
    int64_t elements;

    PYPTO_INLINE Overlap(int rank, const int64_t* shape, const int64_t* offset, const int64_t* extent) : elements(1) {
#pragma GCC unroll 1
        for (int i = 0; i < rank; ++i) {
            begin[i] = clip(-offset[i], 0, extent[i]);
            count[i] = most(clip(shape[i] - offset[i], begin[i], extent[i]) - begin[i], 0);
            elements *= count[i];
        }
    }
};

// The tile side of a transfer: the overlap inside a window of `physical` extents that is folded into rows.
template <typename T>
PYPTO_INLINE Side<T> tile_side(T* data, int64_t row_stride, int64_t col_stride, int rank, const int64_t* physical,
                               const Overlap& overlap) {
    Side<T> side;
    side.data = data;
    int64_t stride = row_stride;
#pragma GCC unroll 1
    for (int i = rank - 1; i >= 0; --i) {
        side.stride[i] = i == rank - 1 ? col_stride : stride;
        if (i < rank - 1) stride *= physical[i];
        side.data += overlap.begin[i] * side.stride[i];
    }
    return side;
}

template <typename T>
PYPTO_INLINE Side<T> tensor_side(T* data, int rank, const int64_t* stride, const int64_t* offset,
                                 const Overlap& overlap) {
    Side<T> side;
    side.data = data;
#pragma GCC unroll 1
    for (int i = 0; i < rank; ++i) {
        side.stride[i] = stride[i];
        side.data += (offset[i] + overlap.begin[i]) * stride[i];
    }
    return side;
}

// A folded tile as the transfers see it.
template <typename T>
struct Folded {
    T* data;
    int64_t rows, cols, row_stride, col_stride;
};

template <typename T, int R, int C, int RS, int CS>
PYPTO_INLINE Folded<T> folded(const Tile<T, R, C, RS, CS>& tile) {
    return {tile.data, R, C, RS, CS};
}

// tile := tensor[offset : offset + valid], zero elsewhere. `physical` is the window as declared, `valid` the part of it
// that is wanted; what overhangs the tensor reads as zero.
template <typename T, typename S>
__attribute__((noinline)) void load_window(const Kernel& kernel, const Folded<T>& tile, const S* tensor, int rank,
                                           const int64_t* shape, const int64_t* stride, const int64_t* offset,
                                           const int64_t* physical, const int64_t* valid, const char* detail) {
    kernel.check(rank, shape, offset, valid, detail);
    const Overlap overlap(rank, shape, offset, valid);
    if (overlap.elements != tile.rows * tile.cols) {
        for (int64_t i = 0; i < tile.rows; ++i) zero_row(tile.data + i * tile.row_stride, tile.col_stride, tile.cols);
    }
    copy_box<T, const S>(rank, overlap.count,
                         tile_side(tile.data, tile.row_stride, tile.col_stride, rank, physical, overlap),
                         tensor_side(tensor, rank, stride, offset, overlap));
}

// tensor[offset : offset + valid] := tile[:valid], converted to the tensor's type. Elements beyond the tensor are dropped.
template <typename T, typename S>
__attribute__((noinline)) void store_window(const Kernel& kernel, const Folded<T>& tile, S* tensor, int rank,
                                            const int64_t* shape, const int64_t* stride, const int64_t* offset,
                                            const int64_t* physical, const int64_t* valid, const char* detail) {
    kernel.check(rank, shape, offset, valid, detail);
    const Overlap overlap(rank, shape, offset, valid);
    copy_box<S, const T>(
        rank, overlap.count, tensor_side(tensor, rank, stride, offset, overlap),
        tile_side<const T>(tile.data, tile.row_stride, tile.col_stride, rank, physical, overlap));
}

template <typename T, int R, int C, int RS, int CS, typename S, int N>
PYPTO_INLINE void load(const Kernel& kernel, const Tile<T, R, C, RS, CS>& tile, const Tensor<S, N>& tensor,
                       const Index<N>& offset, const Index<N>& physical, const Index<N>& valid, const char* detail) {
    load_window<T, S>(kernel, folded(tile), tensor.data, N, tensor.shape, tensor.stride, offset.at, physical.at,
                      valid.at, detail);
}

template <typename T, int R, int C, int RS, int CS, typename S, int N>
PYPTO_INLINE void store(const Kernel& kernel, const Tile<T, R, C, RS, CS>& tile, const Tensor<S, N>& tensor,
                        const Index<N>& offset, const Index<N>& physical, const Index<N>& valid, const char* detail) {
    store_window<T, S>(kernel, folded(tile), tensor.data, N, tensor.shape, tensor.stride, offset.at, physical.at,
                       valid.at, detail);
}

// The common case: a window of two dimensions whose extents are those of the tile.
template <typename T, int R, int C, int RS, int CS, typename S>
PYPTO_INLINE void load(const Kernel& kernel, const Tile<T, R, C, RS, CS>& tile, const Tensor<S, 2>& tensor,
                       const Index<2>& offset, const char* detail) {
    load(kernel, tile, tensor, offset, box(R, C), box(tile.valid_rows, tile.valid_cols), detail);
}

template <typename T, int R, int C, int RS, int CS, typename S>
PYPTO_INLINE void store(const Kernel& kernel, const Tile<T, R, C, RS, CS>& tile, const Tensor<S, 2>& tensor,
                        const Index<2>& offset, const char* detail) {
    store(kernel, tile, tensor, offset, box(R, C), box(tile.valid_rows, tile.valid_cols), detail);
}

// The address of one element.
template <typename T, int N>
PYPTO_INLINE T* cell(const Kernel& kernel, const Tensor<T, N>& tensor, const Index<N>& index, const char* detail) {
    Index<N> one;
    int64_t element = 0;
    for (int i = 0; i < N; ++i) {
        one.at[i] = 1;
        element += index.at[i] * tensor.stride[i];
    }
    kernel.check(N, tensor.shape, index.at, one.at, detail);
    return tensor.data + element;
}

template <typename T, int N>
PYPTO_INLINE Compute<T> read(const Kernel& kernel, const Tensor<T, N>& tensor, const Index<N>& index, const char* detail) {
    return widen(*cell(kernel, tensor, index, detail));
}

template <typename T, int N>
PYPTO_INLINE void write(const Kernel& kernel, const Tensor<T, N>& tensor, const Index<N>& index, Compute<T> value,
                        const char* detail) {
    *cell(kernel, tensor, index, detail) = convert<T>(value);
}

template <typename T, int R, int C, int RS, int CS>
PYPTO_INLINE Compute<T> read(const Kernel& kernel, const Tile<T, R, C, RS, CS>& tile, int64_t row, int64_t col,
                             const char* detail) {
    kernel.check(2, box(R, C).at, at(row, col).at, box(1, 1).at, detail);
    return widen(tile.at(row, col));
}

template <typename T, int R, int C, int RS, int CS>
PYPTO_INLINE void write(const Kernel& kernel, const Tile<T, R, C, RS, CS>& tile, int64_t row, int64_t col,
                        Compute<T> value, const char* detail) {
    kernel.check(2, box(R, C).at, at(row, col).at, box(1, 1).at, detail);
    tile.at(row, col) = convert<T>(value);
}

// ---- elementwise -------------------------------------------------------------------------------------------------
// An operand of `each` yields, for a row, something indexable by column.

template <typename T, int CS>
struct RowElements {
    T* data;
    PYPTO_INLINE T operator[](int64_t j) const { return data[j * CS]; }
};

template <typename T>
struct Scalar {
    static constexpr bool IS_FLAT = true;
    T value;
    PYPTO_INLINE Scalar row(int64_t) const { return *this; }
    PYPTO_INLINE T operator[](int64_t) const { return value; }
};

template <typename T>
PYPTO_INLINE Scalar<T> splat(T value) {
    return {value};
}

template <typename T, int R, int C, int RS, int CS>
struct Elements {
    static constexpr bool IS_FLAT = Tile<T, R, C, RS, CS>::IS_PACKED;
    const T* data;
    PYPTO_INLINE RowElements<const T, CS> row(int64_t i) const { return {data + i * RS}; }
};

// One value per row, repeated across the columns.
template <typename T, int RS>
struct PerRow {
    static constexpr bool IS_FLAT = false;
    const T* data;
    PYPTO_INLINE Scalar<T> row(int64_t i) const { return {data[i * RS]}; }
};

// One value per column, repeated down the rows.
template <typename T, int CS>
struct PerColumn {
    static constexpr bool IS_FLAT = false;
    const T* data;
    PYPTO_INLINE RowElements<const T, CS> row(int64_t) const { return {data}; }
};

// A block of C values per row, repeated across the columns.
template <typename T, int C>
struct RepeatedBlock {
    const T* data;
    PYPTO_INLINE T operator[](int64_t j) const { return data[j % C]; }
};

template <typename T, int C, int RS>
struct PerRowBlock {
    static constexpr bool IS_FLAT = false;
    const T* data;
    PYPTO_INLINE RepeatedBlock<T, C> row(int64_t i) const { return {data + i * RS}; }
};

// A tile of more than two dimensions, repeated along those in which it has one element. STEPS are pairs, the last
// leading dimension first: how long the dimension of the result is, and how many rows of the tile one step takes.
template <typename T, int RS, int CS, int... STEPS>
struct Repeated {
    static constexpr bool IS_FLAT = false;
    const T* data;
    PYPTO_INLINE RowElements<const T, CS> row(int64_t i) const {
        constexpr int steps[] = {STEPS...};
        int64_t at = 0;
        for (unsigned k = 0; k < sizeof...(STEPS); k += 2) {
            at += i % steps[k] * steps[k + 1];
            i /= steps[k];
        }
        return {data + at * RS};
    }
};

template <bool HAS_COLUMNS, int... STEPS, typename T, int R, int C, int RS, int CS>
PYPTO_INLINE Repeated<T, RS, HAS_COLUMNS ? CS : 0, STEPS...> repeated(const Tile<T, R, C, RS, CS>& tile) {
    return {tile.data};
}

template <typename T, int R, int C, int RS>
PYPTO_INLINE PerRowBlock<T, C, RS> per_row_block(const Tile<T, R, C, RS, 1>& tile) {
    return {tile.data};
}

template <typename T, int R, int C, int RS, int CS>
PYPTO_INLINE PerRow<T, RS> per_row(const Tile<T, R, C, RS, CS>& tile) {
    return {tile.data};
}

template <typename T, int R, int C, int RS, int CS>
PYPTO_INLINE PerColumn<T, CS> per_column(const Tile<T, R, C, RS, CS>& tile) {
    return {tile.data};
}

template <typename T, int R, int C, int RS, int CS>
PYPTO_INLINE Elements<T, R, C, RS, CS> operand(const Tile<T, R, C, RS, CS>& tile) {
    return {tile.data};
}
template <typename T>
PYPTO_INLINE Scalar<T> operand(const Scalar<T>& scalar) {
    return scalar;
}
template <typename T, int RS>
PYPTO_INLINE PerRow<T, RS> operand(const PerRow<T, RS>& vector) {
    return vector;
}
template <typename T, int CS>
PYPTO_INLINE PerColumn<T, CS> operand(const PerColumn<T, CS>& vector) {
    return vector;
}

template <typename T, int C, int RS>
PYPTO_INLINE PerRowBlock<T, C, RS> operand(const PerRowBlock<T, C, RS>& vector) {
    return vector;
}

template <typename T, int RS, int CS, int... STEPS>
PYPTO_INLINE Repeated<T, RS, CS, STEPS...> operand(const Repeated<T, RS, CS, STEPS...>& tile) {
    return tile;
}

template <typename T, typename F, typename... Rows>
PYPTO_INLINE void each_in_row(T* out, int64_t stride, int64_t count, F f, Rows... in) {
    if (stride == 1) {
        PYPTO_SIMD
        for (int64_t j = 0; j < count; ++j) out[j] = convert<T>(f(convert<Compute<T>>(in[j])...));
    } else {
        for (int64_t j = 0; j < count; ++j) out[j * stride] = convert<T>(f(convert<Compute<T>>(in[j])...));
    }
}

template <typename T, int R, int C, int RS, int CS, typename F, typename... In>
PYPTO_INLINE void each_operand(const Tile<T, R, C, RS, CS>& out, F f, const In&... in) {
    const int64_t rows = clip(out.valid_rows, 0, R);
    if constexpr (Tile<T, R, C, RS, CS>::IS_PACKED && (In::IS_FLAT && ...)) {
        each_in_row(out.data, 1, rows * C, f, in.row(0)...);
    } else {
        for (int64_t i = 0; i < rows; ++i) each_in_row(out.row(i), CS, C, f, in.row(i)...);
    }
    for (int64_t i = rows; i < R; ++i) zero_row(out.row(i), CS, C);
}

// out[i, j] := f(in[i, j]...), computed in the arithmetic type of the output and rounded once.
// The output may be one of the inputs, element for element.
template <typename T, int R, int C, int RS, int CS, typename F, typename... In>
PYPTO_INLINE void each(const Tile<T, R, C, RS, CS>& out, F f, const In&... in) {
    each_operand(out, f, operand(in)...);
}

// ---- filling and copying -----------------------------------------------------------------------------------------

template <typename T, int R, int C, int RS, int CS>
PYPTO_INLINE void fill(const Tile<T, R, C, RS, CS>& tile, T value) {
    if constexpr (Tile<T, R, C, RS, CS>::IS_PACKED) {
        PYPTO_SIMD
        for (int64_t j = 0; j < int64_t{R} * C; ++j) tile.data[j] = value;
    } else {
        for (int64_t i = 0; i < R; ++i) {
            for (int64_t j = 0; j < C; ++j) tile.at(i, j) = value;
        }
    }
}

// All elements, valid or not, between tiles of equal extents.
template <typename T, int R, int C, int RS, int CS, typename S, int RS2, int CS2>
PYPTO_INLINE void copy(const Tile<T, R, C, RS, CS>& to, const Tile<S, R, C, RS2, CS2>& from) {
    for (int64_t i = 0; i < R; ++i) copy_row(to.row(i), CS, from.row(i), CS2, C);
}

// Moves `from` to `to` with its valid rectangle.
template <typename T, int R, int C, int RS, int CS, int RS2, int CS2>
PYPTO_INLINE void assign(Tile<T, R, C, RS, CS>& to, const Tile<T, R, C, RS2, CS2>& from) {
    if (static_cast<const void*>(to.data) != static_cast<const void*>(from.data)) copy(to, from);
    to.valid_rows = from.valid_rows;
    to.valid_cols = from.valid_cols;
}

// The window of R2 x C2 elements at (row, col): no data moves.
template <int R2, int C2, typename T, int R, int C, int RS, int CS>
PYPTO_INLINE Tile<T, R2, C2, RS, CS> window(const Tile<T, R, C, RS, CS>& tile, int64_t row, int64_t col) {
    return {tile.data + row * RS + col * CS, R2, C2};
}

// As above, and in checked mode the first `rows` x `cols` elements of the window must lie in the tile.
template <int R2, int C2, typename T, int R, int C, int RS, int CS>
PYPTO_INLINE Tile<T, R2, C2, RS, CS> window(const Kernel& kernel, const Tile<T, R, C, RS, CS>& tile, int64_t row,
                                            int64_t col, int64_t rows, int64_t cols, const char* detail) {
    kernel.check(2, box(R, C).at, at(row, col).at, box(rows, cols).at, detail);
    return window<R2, C2>(tile, row, col);
}

// Same elements in row-major order under other extents: no data moves.
template <int R2, int C2, typename T, int R, int C, int RS, int CS>
PYPTO_INLINE Tile<T, R2, C2> reshape(const Tile<T, R, C, RS, CS>& tile) {
    static_assert(Tile<T, R, C, RS, CS>::IS_PACKED, "only a packed tile can be reshaped in place");
    static_assert(R * C == R2 * C2, "a reshape keeps the number of elements");
    return {tile.data, R2, C2};
}

// Same bytes as elements of another type: no data moves.
template <typename To, int R2, int C2, typename T, int R, int C, int RS, int CS>
PYPTO_INLINE Tile<To, R2, C2> reinterpret(const Tile<T, R, C, RS, CS>& tile) {
    static_assert(R * C * sizeof(T) == R2 * C2 * sizeof(To), "a reinterpretation keeps the number of bytes");
    return {reinterpret_cast<To*>(tile.data), R2, C2};
}

// Rows and columns swapped: no data moves.
template <typename T, int R, int C, int RS, int CS>
PYPTO_INLINE Tile<T, C, R, CS, RS> transpose_view(const Tile<T, R, C, RS, CS>& tile) {
    return {tile.data, tile.valid_cols, tile.valid_rows};
}

// target[row:, col:] := valid rectangle of source, converted to the target's type; the rest of the target stays.
template <typename T, int R, int C, int RS, int CS, typename S, int R2, int C2, int RS2, int CS2>
PYPTO_INLINE void assemble(const Kernel& kernel, const Tile<T, R, C, RS, CS>& target,
                           const Tile<S, R2, C2, RS2, CS2>& source, int64_t row, int64_t col, const char* detail) {
    const Tensor<T, 2> place{target.data, {R, C}, {RS, CS}};
    store(kernel, source, place, at(row, col), box(R2, C2), box(source.valid_rows, source.valid_cols), detail);
}

// Valid rectangle of source, everything else `pad`.
template <typename T, int R, int C, int RS, int CS, int R2, int C2, int RS2, int CS2>
PYPTO_INLINE void fillpad(const Tile<T, R, C, RS, CS>& out, const Tile<T, R2, C2, RS2, CS2>& source, T pad) {
    const int64_t rows = clip(source.valid_rows, 0, R);
    const int64_t cols = clip(source.valid_cols, 0, C);
    for (int64_t i = 0; i < rows; ++i) {
        if (static_cast<const void*>(out.row(i)) != static_cast<const void*>(source.row(i))) {
            copy_row(out.row(i), CS, source.row(i), CS2, cols);
        }
        for (int64_t j = cols; j < C; ++j) out.at(i, j) = pad;
    }
    for (int64_t i = rows; i < R; ++i) {
        for (int64_t j = 0; j < C; ++j) out.at(i, j) = pad;
    }
}

}  // namespace pypto

// For hand-written kernels: the arguments of `kernel_entry` as typed views and numbers.
//
//     extern "C" void kernel_entry(int64_t* args) {
//         pypto::TensorArg<const float, 2> x(args, 0);
//         pypto::TensorArg<float, 2> out(args, 1);
//         float factor = pypto::scalar_arg<float>(args, 2);
//         for (int64_t i = 0; i < x.extent(0); i++)
//             for (int64_t j = 0; j < x.extent(1); j++) out(i, j) = factor * x(i, j);
//     }
//
// Slots count tensors first, in parameter order, then scalars. Needs no standard library.
#pragma once

#include "pypto_abi.h"

namespace pypto {

inline const PyptoDispatchContext& dispatch(const int64_t* args) {
    return *reinterpret_cast<const PyptoDispatchContext*>(args[PYPTO_DISPATCH_SLOT]);
}

inline const PyptoCoreContext& core(const int64_t* args) {
    return *reinterpret_cast<const PyptoCoreContext*>(args[PYPTO_CORE_SLOT]);
}

// A tensor argument of that many dimensions. In checked mode an index out of range ends the run with an error.
template <class T, int Rank>
class TensorArg {
   public:
    TensorArg(const int64_t* args, int slot) : core_(&core(args)), checked_(core_->checked != 0) {
        const auto& tensor = *reinterpret_cast<const PyptoTensorDescriptor*>(args[slot]);
        data_ = reinterpret_cast<T*>(tensor.addr) + tensor.start_offset;
        // What is passed may have more leading dimensions, of one element each.
        int skipped = static_cast<int>(tensor.ndims) - Rank;
        for (int k = 0; k < Rank; k++) {
            extents_[k] = skipped + k < 0 ? 1 : tensor.shapes[skipped + k];
            strides_[k] = skipped + k < 0 ? 0 : tensor.strides[skipped + k];
        }
    }

    int64_t extent(int dim) const { return extents_[dim]; }
    int64_t stride(int dim) const { return strides_[dim]; }
    T* data() const { return data_; }

    template <class... Index>
    T& operator()(Index... index) const {
        static_assert(sizeof...(Index) == Rank, "one index per dimension");
        const int64_t at[] = {static_cast<int64_t>(index)...};
        int64_t offset = 0;
        for (int k = 0; k < Rank; k++) {
            if (checked_ && (at[k] < 0 || at[k] >= extents_[k])) core_->fail(core_, "index out of range");
            offset += at[k] * strides_[k];
        }
        return data_[offset];
    }

   private:
    const PyptoCoreContext* core_;
    bool checked_;
    T* data_;
    int64_t extents_[Rank];
    int64_t strides_[Rank];
};

// A scalar argument: its bits are the low bytes of the slot.
template <class T>
T scalar_arg(const int64_t* args, int slot) {
    T value;
    __builtin_memcpy(&value, &args[slot], sizeof(T));
    return value;
}

}  // namespace pypto

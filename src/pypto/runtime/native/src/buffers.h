// Memory that the runtime makes for a program: aligned, counted by its users, reused between tasks and runs.
#pragma once

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "pto_orchestration_api.h"

namespace pypto {

constexpr size_t kAlignment = 64;

struct Buffer : PyptoBuffer {
    uint64_t capacity;
    std::atomic<int64_t>* live_bytes;  // of a traced run; null otherwise
    uint32_t size_class;

    void* data() { return reinterpret_cast<char*>(this) + kAlignment; }
};
static_assert(sizeof(Buffer) <= kAlignment, "the header fits in front of the data");

// Keeps freed blocks by size class, so that a loop of temporaries touches warm pages. Shared by all threads.
class BufferPool {
public:
    // Null when the machine has no memory left.
    Buffer* allocate(uint64_t bytes) {
        uint32_t size_class = class_of(bytes);
        {
            std::lock_guard<std::mutex> guard(mutex_);
            auto& blocks = free_[size_class];
            if (!blocks.empty()) {
                Buffer* buffer = blocks.back();
                blocks.pop_back();
                kept_bytes_ -= buffer->capacity;
                buffer->uses = 0;
                buffer->live_bytes = nullptr;
                return buffer;
            }
        }
        uint64_t capacity = class_bytes(size_class);
        if (capacity < bytes) return nullptr;
        void* memory = nullptr;
        if (posix_memalign(&memory, kAlignment, capacity + kAlignment) != 0) return nullptr;
        Buffer* buffer = new (memory) Buffer;
        buffer->uses = 0;
        buffer->live_bytes = nullptr;
        buffer->capacity = capacity;
        buffer->size_class = size_class;
        return buffer;
    }

    void release(PyptoBuffer* handle) {
        Buffer* buffer = static_cast<Buffer*>(handle);
        if (buffer->live_bytes != nullptr) buffer->live_bytes->fetch_sub(static_cast<int64_t>(buffer->capacity));
        {
            std::lock_guard<std::mutex> guard(mutex_);
            if (kept_bytes_ + buffer->capacity <= kKeepAtMost) {
                kept_bytes_ += buffer->capacity;
                free_[buffer->size_class].push_back(buffer);
                return;
            }
        }
        std::free(buffer);
    }

private:
    static constexpr uint64_t kKeepAtMost = uint64_t{256} << 20;
    static constexpr uint32_t kClasses = 4 * 56;

    // Quarter steps between powers of two: 64, 80, 96, 112, 128, 160, ...
    static uint64_t class_bytes(uint32_t size_class) {
        uint32_t exponent = size_class / 4;
        return (uint64_t{4} + size_class % 4) << (exponent + 4);
    }
    static uint32_t class_of(uint64_t bytes) {
        uint32_t size_class = 0;
        if (bytes > 64) size_class = (63 - static_cast<uint32_t>(__builtin_clzll(bytes)) - 6) * 4;
        while (size_class + 1 < kClasses && class_bytes(size_class) < bytes) ++size_class;
        return size_class;
    }

    std::mutex mutex_;
    std::vector<Buffer*> free_[kClasses];
    uint64_t kept_bytes_ = 0;
};

// Fills a buffer with `info`'s initial value.
inline void fill(void* data, uint64_t bytes, const TensorCreateInfo& info) {
    auto repeat = [&](auto value) {
        auto* out = static_cast<decltype(value)*>(data);
        for (uint64_t i = 0, n = bytes / sizeof value; i < n; ++i) out[i] = value;
    };
    if (info.initial_float == 0 && info.initial_int == 0) {
        std::memset(data, 0, bytes);
        return;
    }
    switch (info.dtype) {
        case DataType::FLOAT32: repeat(static_cast<float>(info.initial_float)); return;
        case DataType::BFLOAT16: {
            float value = static_cast<float>(info.initial_float);
            uint32_t bits;
            std::memcpy(&bits, &value, 4);
            if (value == value) bits += 0x7FFFu + (bits >> 16 & 1u);
            repeat(static_cast<uint16_t>(bits >> 16));
            return;
        }
        case DataType::INT64:
        case DataType::UINT64: repeat(info.initial_int); return;
        case DataType::INT32:
        case DataType::UINT32: repeat(static_cast<int32_t>(info.initial_int)); return;
        case DataType::INT16:
        case DataType::UINT16: repeat(static_cast<int16_t>(info.initial_int)); return;
        case DataType::BOOL: repeat(static_cast<uint8_t>(info.initial_float != 0)); return;
        case DataType::INT8:
        case DataType::UINT8: repeat(static_cast<int8_t>(info.initial_int)); return;
        default: return;  // refused before the allocation, see can_fill
    }
}

// 16-bit and narrower floats are only ever filled with 0, except BF16 which is a cut float.
inline bool can_fill(const TensorCreateInfo& info) {
    if (info.initial_float == 0 && info.initial_int == 0) return true;
    switch (info.dtype) {
        case DataType::FLOAT32:
        case DataType::BFLOAT16:
        case DataType::BOOL:
        case DataType::INT8:
        case DataType::INT16:
        case DataType::INT32:
        case DataType::INT64:
        case DataType::UINT8:
        case DataType::UINT16:
        case DataType::UINT32:
        case DataType::UINT64: return true;
        default: return false;
    }
}

}  // namespace pypto

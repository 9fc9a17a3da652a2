// Tasks by the region of one memory space that they use.
//
// A short list is scanned. A long one (many disjoint writers in flight) is kept in cells: an entry of at most
// 2^k bytes lies in the cell of its first byte on a grid of step 2^k, so a look-up touches a few cells per
// size that occurs.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "region.h"
#include "task.h"

namespace pypto {

struct Entry {
    Region region;
    Task* task;
    uint64_t serial;

    // The slot was given to another task, or its task is done: either way nothing is left to wait for.
    bool stale() const { return task->serial != serial || task->done(); }
};

class EntryList {
public:
    // Calls visit(entry, overlap) for entries that overlap `region`; removes those for which it returns true.
    template <class Visit>
    void visit_overlapping(const Region& region, Visit visit) {
        auto overlapping = [&](const Entry& entry) {
            Overlap overlap = compare(region, entry.region);
            return overlap != Overlap::None && visit(entry, overlap);
        };
        if (grid_ == nullptr) {
            remove_if(flat_, overlapping);
            size_ = flat_.size();
            return;
        }
        for (uint32_t k = 0; k < kLevels; ++k) {
            if (grid_[k].empty()) continue;
            uint64_t first = region.lo >> k;
            first -= first > 0;  // an entry that starts in the cell before may reach into this one
            uint64_t last = (region.hi - 1) >> k;
            if (last - first >= grid_[k].size()) {
                for (auto& [cell, entries] : grid_[k]) size_ -= remove_if(entries, overlapping);
                continue;
            }
            for (uint64_t cell = first; cell <= last; ++cell) {
                auto found = grid_[k].find(cell);
                if (found != grid_[k].end()) size_ -= remove_if(found->second, overlapping);
            }
        }
    }

    void add(const Region& region, Task* task, bool keep_finished) {
        if (size_ >= sweep_at_ && !keep_finished) sweep();
        insert(Entry{region, task, task->serial});
    }

    // Drops entries of finished tasks, and chooses the form that suits what is left.
    void sweep() {
        std::vector<Entry> live;
        auto keep_live = [&](const Entry& entry) {
            if (!entry.stale()) live.push_back(entry);
            return true;
        };
        if (grid_ == nullptr) {
            remove_if(flat_, [](const Entry& entry) { return entry.stale(); });
            size_ = flat_.size();
            if (size_ > kScanAtMost) live.swap(flat_);
        } else {
            for (uint32_t k = 0; k < kLevels; ++k) {
                for (auto& [cell, entries] : grid_[k]) remove_if(entries, keep_live);
            }
        }
        if (!live.empty() || grid_ != nullptr) rebuild(live);
        sweep_at_ = size_ * 2 + 16;
    }

    bool empty() const { return size_ == 0; }

private:
    static constexpr size_t kScanAtMost = 32;
    static constexpr uint32_t kLevels = 48;
    using Level = std::unordered_map<uint64_t, std::vector<Entry>>;

    template <class Test>
    static size_t remove_if(std::vector<Entry>& entries, Test test) {
        size_t kept = 0;
        size_t n = entries.size();
        for (size_t i = 0; i < n; ++i) {
            if (test(entries[i])) continue;
            if (kept != i) entries[kept] = entries[i];
            ++kept;
        }
        entries.resize(kept);
        return n - kept;
    }

    void insert(const Entry& entry) {
        ++size_;
        if (grid_ == nullptr) {
            flat_.push_back(entry);
            return;
        }
        uint64_t bytes = entry.region.hi - entry.region.lo;
        uint32_t k = bytes <= 1 ? 0 : 64 - static_cast<uint32_t>(__builtin_clzll(bytes - 1));
        grid_[k < kLevels ? k : kLevels - 1][entry.region.lo >> k].push_back(entry);
    }

    void rebuild(const std::vector<Entry>& entries) {
        flat_.clear();
        grid_.reset(entries.size() > kScanAtMost ? new Level[kLevels] : nullptr);
        size_ = 0;
        for (const Entry& entry : entries) insert(entry);
    }

    std::vector<Entry> flat_;
    std::unique_ptr<Level[]> grid_;
    size_t size_ = 0;
    size_t sweep_at_ = 16;
};

}  // namespace pypto

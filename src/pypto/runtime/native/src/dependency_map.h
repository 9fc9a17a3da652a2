// Who writes and who reads which part of which memory.
//
// One record per memory space holds two lists of entries (region, task): producers and readers. A writer that
// covers an entry and is ordered after it replaces it, so a chain of whole-buffer updates keeps one entry.
// Entries of finished tasks mean nothing and are swept when a list has doubled since the last sweep, so the
// map stays proportional to the tasks in flight, at constant amortised cost. Only the orchestrating thread
// touches it.
#pragma once

#include <unordered_map>

#include "entry_list.h"

namespace pypto {

struct SpaceRecord {
    EntryList producers;
    EntryList readers;
};

class DependencyMap {
public:
    SpaceRecord& record(uint64_t space) {
        if (space == last_space_ && last_ != nullptr) return *last_;
        auto found = records_.find(space);
        if (found == records_.end()) {
            if (records_.size() >= sweep_at_) sweep();
            found = records_.emplace(space, SpaceRecord{}).first;
        }
        last_space_ = space;
        last_ = &found->second;
        return *last_;
    }

    void clear() {
        records_.clear();
        last_ = nullptr;
        sweep_at_ = kFirstSweep;
    }

private:
    static constexpr size_t kFirstSweep = 256;

    void sweep() {
        for (auto it = records_.begin(); it != records_.end();) {
            it->second.producers.sweep();
            it->second.readers.sweep();
            bool unused = it->second.producers.empty() && it->second.readers.empty();
            it = unused ? records_.erase(it) : std::next(it);
        }
        last_ = nullptr;
        sweep_at_ = records_.size() * 2 + kFirstSweep;
    }

    std::unordered_map<uint64_t, SpaceRecord> records_;
    uint64_t last_space_ = 0;
    SpaceRecord* last_ = nullptr;
    size_t sweep_at_ = kFirstSweep;
};

}  // namespace pypto

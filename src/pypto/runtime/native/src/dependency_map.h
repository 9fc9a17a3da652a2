// Who writes and who reads which part of which memory.
//
// One record per memory space holds two lists of entries (region, task): producers and readers. A writer that
// covers an entry and is ordered after it replaces it, so a chain of whole-buffer updates keeps one entry.
// Entries of finished tasks mean nothing and are swept when a list has doubled since the last sweep, so the
// map stays proportional to the tasks in flight, at constant amortised cost. Only the orchestrating thread
// touches it.
#pragma once

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
    // Calls visit(entry, overlap) for live entries that overlap `region`; removes those for which it returns
    // true.
    template <class Visit>
    void visit_overlapping(const Region& region, Visit visit) {
        size_t kept = 0;
        for (size_t i = 0; i < entries_.size(); ++i) {
            Overlap overlap = compare(region, entries_[i].region);
            bool remove = overlap != Overlap::None && visit(entries_[i], overlap);
            if (remove) continue;
            if (kept != i) entries_[kept] = entries_[i];
            ++kept;
        }
        entries_.resize(kept);
    }

    void add(const Region& region, Task* task, bool keep_finished) {
        if (entries_.size() >= sweep_at_ && !keep_finished) sweep();
        entries_.push_back(Entry{region, task, task->serial});
    }

    void sweep() {
        size_t kept = 0;
        for (size_t i = 0; i < entries_.size(); ++i) {
            if (entries_[i].stale()) continue;
            if (kept != i) entries_[kept] = entries_[i];
            ++kept;
        }
        entries_.resize(kept);
        sweep_at_ = kept * 2 + 16;
    }

    bool empty() const { return entries_.empty(); }
    size_t size() const { return entries_.size(); }

private:
    std::vector<Entry> entries_;
    size_t sweep_at_ = 16;
};

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

    size_t entry_count() const {
        size_t total = 0;
        for (auto& [space, record] : records_) total += record.producers.size() + record.readers.size();
        return total;
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

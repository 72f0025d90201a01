// The queue of future tasks in a simulated cluster, ordered by time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

// Keeps the true time, which no host knows: every host has its own clock, which differs by an
// offset. Tasks with the same time run in the order in which they were added.
class Scheduler {
 public:
  using Task = std::function<void()>;

  TimePoint now() const { return now_; }
  void At(TimePoint time, Task task) {
    std::size_t place = tasks_.size();
    if (free_.empty()) {
      tasks_.push_back(std::move(task));
    } else {
      place = free_.back();
      free_.pop_back();
      tasks_[place] = std::move(task);
    }
    heap_.push_back({std::max(time, now_), ++last_order_, place});
    std::push_heap(heap_.begin(), heap_.end());
  }
  void After(Duration delay, Task task) { At(now_ + delay, std::move(task)); }

  // Runs the next task; false if there is none.
  bool Step() {
    if (heap_.empty()) return false;
    std::pop_heap(heap_.begin(), heap_.end());
    const Entry entry = heap_.back();
    heap_.pop_back();
    now_ = entry.time;
    const Task task = std::exchange(tasks_[entry.place], nullptr);
    free_.push_back(entry.place);
    task();
    return true;
  }

  std::uint64_t tasks() const { return last_order_; }

 private:
  struct Entry {
    TimePoint time;
    std::uint64_t order = 0;
    std::size_t place = 0;                      // index of its task
    bool operator<(const Entry& other) const {  // the first is the greatest
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  TimePoint now_{std::chrono::hours(1)};
  std::uint64_t last_order_ = 0;
  std::vector<Entry> heap_;
  // Kept separately, because a heap moves its entries.
  std::vector<Task> tasks_;
  std::vector<std::size_t> free_;
};

}  // namespace muster::rendezvous

// The queue of a simulation in order of arrival: messages in both directions, alarms, and agents
// that will come back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <queue>
#include <variant>
#include <vector>

#include "rendezvous/core/directive.h"
#include "rendezvous/core/types.h"
#include "test/rendezvous/simulation/call.h"

namespace muster::rendezvous {

// For a kJoin, `request` is the object to which the event points.
struct ToCoordinator {
  Call event;
  std::unique_ptr<const JoinRequest> request;
};
struct ToAgent {
  int index = 0;
  AgentId agent = 0;  // the attendance for which it is meant
  Directive directive;
};
struct Alarm {
  int index = 0;
  std::uint64_t number = 0;
};
struct Newcomer {
  int index = 0;
};
using Item = std::variant<ToCoordinator, ToAgent, Alarm, Newcomer>;

// Items with the same time come out in the order in which they were put in.
class Post {
 public:
  void Put(TimePoint time, Item item);

  bool empty() const { return heap_.empty(); }
  // When the first item arrives, and whether it is for the Coordinator. Must not be empty.
  TimePoint next_time() const { return heap_.top().time; }
  bool next_is_for_coordinator() const;
  Item Take();
  // Delays the first item until `time`, and keeps its place among items of the same time.
  void Defer(TimePoint time);

 private:
  struct Entry {
    TimePoint time;
    std::uint64_t order;
    std::size_t place;                          // in items_
    bool operator<(const Entry& other) const {  // the first is the greatest
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  std::priority_queue<Entry> heap_;
  std::uint64_t last_order_ = 0;
  std::vector<Item> items_;
  std::vector<std::size_t> free_;  // places in items_
};

}  // namespace muster::rendezvous

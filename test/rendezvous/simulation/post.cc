#include "test/rendezvous/simulation/post.h"

#include <utility>

namespace muster::rendezvous {

void Post::Put(TimePoint time, Item item) {
  std::size_t place = items_.size();
  if (free_.empty()) {
    items_.push_back(std::move(item));
  } else {
    place = free_.back();
    free_.pop_back();
    items_[place] = std::move(item);
  }
  heap_.push({time, ++last_order_, place});
}

bool Post::next_is_for_coordinator() const {
  return std::holds_alternative<ToCoordinator>(items_[heap_.top().place]);
}

Item Post::Take() {
  const std::size_t place = heap_.top().place;
  heap_.pop();
  free_.push_back(place);
  return std::move(items_[place]);
}

void Post::Defer(TimePoint time) {
  Entry entry = heap_.top();
  heap_.pop();
  entry.time = time;
  heap_.push(entry);
}

}  // namespace muster::rendezvous

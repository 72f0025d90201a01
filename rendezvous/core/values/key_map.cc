#include "rendezvous/core/values/key_map.h"

#include <utility>

namespace muster::rendezvous {

void KeyQueues::Push(std::string_view key, std::string_view value) {
  const auto [queue, is_new] = queues_.try_emplace(key);
  queue->second.emplace_back(value);
  bytes_ += (is_new ? key.size() : 0) + value.size() + kBytesPerValue;
}

std::optional<std::string> KeyQueues::Pop(std::string_view key) {
  const auto queue = queues_.find(key);
  if (queue == queues_.end()) return std::nullopt;
  std::string value = std::move(queue->second.front());
  queue->second.pop_front();
  bytes_ -= value.size() + kBytesPerValue;
  if (queue->second.empty()) {
    bytes_ -= queue->first.size();
    queues_.erase(queue);
  }
  return value;
}

std::size_t KeyQueues::Length(std::string_view key) const {
  const auto queue = queues_.find(key);
  return queue == queues_.end() ? 0 : queue->second.size();
}

}  // namespace muster::rendezvous

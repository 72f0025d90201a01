#include "trainer/comm/flight_log.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace muster::trainer {
namespace {

// Text of at most `bytes`, which is written and read word by word.
template <std::size_t bytes>
class SharedText {
 public:
  void Set(std::string_view text) {
    Words words{};
    std::memcpy(words.data(), text.data(), std::min(text.size(), bytes));
    for (std::size_t i = 0; i < words.size(); ++i) words_[i] = words[i];
  }
  std::string Get() const {
    Words words;
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = words_[i];
    const auto* const text = reinterpret_cast<const char*>(words.data());
    return std::string(text, strnlen(text, bytes));
  }

 private:
  static constexpr std::size_t kWords = bytes / sizeof(std::uint64_t);
  using Words = std::array<std::uint64_t, kWords>;
  std::array<std::atomic<std::uint64_t>, kWords> words_;
};

}  // namespace

std::int64_t FlightNow() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// A reader takes what it has read for true if the ticket was the same before and after.
struct alignas(64) FlightLog::Slot {
  std::atomic<std::uint64_t> ticket;  // 0: nothing is there, or it is being written
  std::atomic<std::uint64_t> bytes;
  std::atomic<std::int64_t> entered_ns;
  std::atomic<std::int64_t> left_ns;
  std::atomic<std::uint32_t> number;
  std::atomic<FlightPart> part;
  std::atomic<Operation> operation;
  SharedText<kGroupBytes> group;
  SharedText<kNameBytes> tensor;
};

struct alignas(64) FlightLog::Ring {
  std::atomic<std::uint64_t> last_ticket;
  std::array<Slot, kRecords> slots;
};

std::size_t FlightLog::Bytes() {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
                std::atomic<FlightPart>::is_always_lock_free);
  return sizeof(Ring);
}

FlightLog::Slot& FlightLog::slot(std::uint64_t ticket) const {
  return ring_->slots[ticket % kRecords];
}

std::uint64_t FlightLog::Enter(const FlightEntry& entry) {
  const std::uint64_t ticket = ++ring_->last_ticket;
  Slot& s = slot(ticket);
  s.ticket = 0;
  s.part = entry.part;
  s.operation = entry.operation;
  s.number = entry.number;
  s.bytes = entry.bytes;
  s.entered_ns = entry.now_ns;
  s.left_ns = 0;
  s.group.Set(entry.group);
  s.tensor.Set(entry.tensor);
  s.ticket = ticket;
  return ticket;
}

void FlightLog::Leave(std::uint64_t ticket, std::int64_t now_ns) {
  Slot& s = slot(ticket);
  if (s.ticket == ticket) s.left_ns = now_ns;
}

std::vector<FlightRecord> FlightLog::Read() const {
  std::vector<FlightRecord> records;
  const std::uint64_t last = ring_->last_ticket;
  for (std::uint64_t ticket = last > kRecords ? last - kRecords + 1 : 1; ticket <= last; ++ticket) {
    const Slot& s = slot(ticket);
    if (s.ticket != ticket) continue;
    FlightRecord record = {.group = s.group.Get(),
                           .part = s.part,
                           .operation = s.operation,
                           .number = s.number,
                           .tensor = s.tensor.Get(),
                           .bytes = s.bytes,
                           .entered_ns = s.entered_ns,
                           .left_ns = s.left_ns};
    if (s.ticket != ticket) continue;
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace muster::trainer

#include "trainer/comm/flight_log.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace muster::trainer {
namespace {

constexpr std::size_t kWords = FlightLog::kNameBytes / sizeof(std::uint64_t);
using Name = std::array<std::uint64_t, kWords>;

Name Packed(std::string_view text) {
  Name name{};
  std::memcpy(name.data(), text.data(), std::min(text.size(), FlightLog::kNameBytes));
  return name;
}

std::string Unpacked(const Name& name) {
  const auto* const text = reinterpret_cast<const char*>(name.data());
  return std::string(text, strnlen(text, FlightLog::kNameBytes));
}

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
  std::atomic<FlightGroup> group;
  std::atomic<Operation> operation;
  std::array<std::atomic<std::uint64_t>, kWords> name;
};

struct alignas(64) FlightLog::Ring {
  std::atomic<std::uint64_t> last_ticket;
  std::array<std::atomic<std::uint32_t>, kFlightGroups> numbers;
  std::array<Slot, kRecords> slots;
};

std::size_t FlightLog::Bytes() {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
                std::atomic<FlightGroup>::is_always_lock_free);
  return sizeof(Ring);
}

FlightLog::Slot& FlightLog::slot(std::uint64_t ticket) const {
  return ring_->slots[ticket % kRecords];
}

std::uint64_t FlightLog::Enter(FlightGroup group, Operation operation, std::string_view tensor,
                               std::uint64_t bytes, std::int64_t now_ns) {
  const std::uint64_t ticket = ++ring_->last_ticket;
  Slot& s = slot(ticket);
  s.ticket = 0;
  s.group = group;
  s.operation = operation;
  s.number = ++ring_->numbers[static_cast<std::size_t>(group)];
  s.bytes = bytes;
  s.entered_ns = now_ns;
  s.left_ns = 0;
  const Name name = Packed(tensor);
  for (std::size_t i = 0; i < kWords; ++i) s.name[i] = name[i];
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
    FlightRecord record = {.group = s.group,
                           .operation = s.operation,
                           .number = s.number,
                           .bytes = s.bytes,
                           .entered_ns = s.entered_ns,
                           .left_ns = s.left_ns};
    Name name;
    for (std::size_t i = 0; i < kWords; ++i) name[i] = s.name[i];
    if (s.ticket != ticket) continue;
    record.tensor = Unpacked(name);
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace muster::trainer

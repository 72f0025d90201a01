#include "worker/flight/flight_record.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace muster::worker {
namespace {

// It may end up on a terminal, in JSON and in other people's logs.
template <std::size_t bytes>
std::string Printable(const char (&text)[bytes]) {
  std::string printable(text, strnlen(text, bytes));
  std::replace_if(
      printable.begin(), printable.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return printable;
}

FlightRecord RecordIn(const FlightSlot& slot) {
  FlightRecord record = {
      .group = Printable(slot.group),
      .part = slot.part < kFlightParts ? static_cast<FlightPart>(slot.part) : FlightPart::kAll,
      .operation = Printable(slot.operation),
      .number = slot.number,
      .tensor = Printable(slot.tensor),
      .bytes = slot.bytes,
      .entered_ns = std::max<std::int64_t>(slot.entered_ns, 0),
      .left_ns = std::max<std::int64_t>(slot.left_ns, 0)};
  if (record.operation.empty()) record.operation = "operation";
  return record;
}

}  // namespace

std::vector<FlightRecord> FlightsIn(const std::vector<FlightSlot>& slots) {
  std::vector<std::pair<std::uint64_t, FlightRecord>> found;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const std::uint64_t ticket = slots[i].ticket;
    if (ticket != 0 && ticket % kFlightRecords == i) found.emplace_back(ticket, RecordIn(slots[i]));
  }
  std::sort(found.begin(), found.end(),
            [](const auto& one, const auto& other) { return one.first < other.first; });
  std::vector<FlightRecord> records;
  for (auto& [ticket, record] : found) records.push_back(std::move(record));
  return records;
}

}  // namespace muster::worker

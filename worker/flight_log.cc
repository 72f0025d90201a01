#include "worker/flight_log.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <utility>

namespace muster::worker {
namespace {

// The text may reach a terminal, JSON and other people's logs.
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

namespace {

using Word = std::atomic<std::uint64_t>;
static_assert(Word::is_always_lock_free && sizeof(Word) == sizeof(std::uint64_t));

constexpr std::size_t kWords = sizeof(FlightSlot) / sizeof(Word);
// The rest is unused.
constexpr std::size_t kUsedWords = offsetof(FlightSlot, unused_too) / sizeof(Word);
constexpr std::size_t kLeftWord = offsetof(FlightSlot, left_ns) / sizeof(Word);
static_assert(offsetof(FlightSlot, ticket) == 0);

template <std::size_t bytes>
void Fill(char (&field)[bytes], std::string_view text) {
  // An empty string_view may have no address.
  if (!text.empty()) std::memcpy(field, text.data(), std::min(text.size(), bytes));
}

}  // namespace

// A FlightSlot, written and read word by word. A writer sets the ticket to 0, writes the other
// words, and then sets the ticket: a reader accepts a record if the ticket is the same before and
// after.
struct FlightLog::Slot {
  std::array<Word, kWords> words;

  Word& ticket() { return words[0]; }
};

FlightHeader NewFlightHeader() {
  FlightHeader header = {};
  std::memcpy(header.magic, kFlightMagic, sizeof kFlightMagic);
  header.version = kFlightVersion;
  header.records = kFlightRecords;
  header.record_bytes = sizeof(FlightSlot);
  return header;
}

bool IsKnown(const FlightHeader& header) {
  return std::memcmp(header.magic, kFlightMagic, sizeof kFlightMagic) == 0 &&
         header.version == kFlightVersion && header.records == kFlightRecords &&
         header.record_bytes == sizeof(FlightSlot);
}

std::int64_t FlightNow() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

FlightLog::Slot& FlightLog::SlotOf(std::uint64_t ticket) const {
  return reinterpret_cast<Slot*>(memory_ + sizeof(FlightHeader))[ticket % kFlightRecords];
}

std::uint64_t FlightLog::Enter(const FlightEntry& entry) {
  FlightSlot written = {};
  written.entered_ns = entry.now_ns;
  written.bytes = entry.bytes;
  written.number = entry.number;
  written.part = static_cast<std::uint8_t>(entry.part);
  Fill(written.operation, entry.operation);
  Fill(written.group, entry.group);
  Fill(written.tensor, entry.tensor);
  std::array<std::uint64_t, kWords> words;
  std::memcpy(words.data(), &written, sizeof written);

  auto& last_ticket = *reinterpret_cast<Word*>(memory_ + offsetof(FlightHeader, last_ticket));
  const std::uint64_t ticket = ++last_ticket;
  Slot& slot = SlotOf(ticket);
  slot.ticket() = 0;
  for (std::size_t i = 1; i < kUsedWords; ++i) {
    slot.words[i].store(words[i], std::memory_order_release);
  }
  slot.ticket().store(ticket, std::memory_order_release);
  return ticket;
}

void FlightLog::Leave(std::uint64_t ticket, std::int64_t now_ns) {
  Slot& slot = SlotOf(ticket);
  if (slot.ticket() == ticket) slot.words[kLeftWord] = static_cast<std::uint64_t>(now_ns);
}

std::vector<FlightRecord> FlightLog::Read() const {
  std::vector<FlightSlot> slots(kFlightRecords);
  for (std::size_t i = 0; i < kFlightRecords; ++i) {
    Slot& slot = SlotOf(i);
    std::array<std::uint64_t, kWords> words = {};
    for (std::size_t word = 0; word < kUsedWords; ++word) words[word] = slot.words[word];
    if (slot.ticket() != words[0]) words[0] = 0;
    std::memcpy(&slots[i], words.data(), sizeof slots[i]);
  }
  return FlightsIn(slots);
}

}  // namespace muster::worker

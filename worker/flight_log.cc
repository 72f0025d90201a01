#include "worker/flight_log.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

#include "base/failure.h"
#include "base/unique_fd.h"
#include "worker/flight_layout.h"

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

// The records in `slots`, in the order in which the operations began. Slots are not trusted: texts
// become printable ASCII, and records in the wrong slot for their ticket are left out. `slots` is a
// copy of a log's, in order, that is no longer written to.
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

absl::StatusOr<FlightMemory> FlightMemory::Open(const std::string& path, std::size_t offset) {
  const auto failed = [&path](const std::string& why) {
    return base::Failure(absl::StatusCode::kUnavailable, "open the flight log", path, why);
  };
  // O_NONBLOCK and O_NOCTTY, as the descriptor's number may refer to anything by now.
  const base::UniqueFd file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.valid()) return failed(base::SystemCause());
  const auto start = static_cast<off_t>(offset);
  FlightHeader header;
  struct stat info {};
  if (fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || start < 0 ||
      info.st_size < static_cast<off_t>(kFlightLogBytes) ||
      start > info.st_size - static_cast<off_t>(kFlightLogBytes) ||
      pread(file.get(), &header, sizeof header, start) != sizeof header || !IsKnown(header)) {
    return failed(absl::StrCat("there is no log of version ", kFlightVersion, " at ", offset));
  }
  // Allocates all of it now: a later write without free memory would raise SIGBUS.
  if (const int error = posix_fallocate(file.get(), start, kFlightLogBytes); error != 0) {
    return failed(base::SystemCause(error));
  }
  void* const mapping =
      mmap(nullptr, kFlightLogBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), start);
  if (mapping == MAP_FAILED) return failed(base::SystemCause());
  auto* const memory = static_cast<std::byte*>(mapping);
  std::memset(memory + offsetof(FlightHeader, last_ticket), 0,
              kFlightLogBytes - offsetof(FlightHeader, last_ticket));
  const std::uint32_t opened = 1;
  std::memcpy(memory + offsetof(FlightHeader, opened), &opened, sizeof opened);
  return FlightMemory(memory);
}

FlightMemory::FlightMemory(FlightMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)) {}

FlightMemory& FlightMemory::operator=(FlightMemory&& other) noexcept {
  std::swap(data_, other.data_);
  return *this;
}

FlightMemory::~FlightMemory() {
  if (data_ != nullptr) munmap(data_, kFlightLogBytes);
}

namespace {

// Uses pread() rather than a mapping: accessing a truncated mapping raises SIGBUS.
bool ReadAll(int file, void* into, std::size_t bytes, std::size_t offset) {
  return pread(file, into, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

}  // namespace

absl::StatusOr<FlightFile> FlightFile::Create(int workers) {
  const auto failed = [] {
    return base::SystemFailure(absl::StatusCode::kUnavailable, "make memory for flight logs");
  };
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t stride = (kFlightLogBytes + page - 1) / page * page;
  base::UniqueFd file(memfd_create("muster-flight-logs", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const auto size = static_cast<off_t>(stride * static_cast<std::size_t>(workers));
  // Sealed, as a worker that shrank the file would kill the others with SIGBUS.
  if (!file.valid() || ftruncate(file.get(), size) != 0 ||
      fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return failed();
  }
  FlightFile made(std::move(file), workers, stride);
  // Workers write only where they find this header.
  const FlightHeader header = NewFlightHeader();
  for (int worker = 0; worker < workers; ++worker) {
    const auto offset = static_cast<off_t>(made.OffsetOf(worker));
    if (pwrite(made.file_.get(), &header, sizeof header, offset) != sizeof header) return failed();
  }
  return made;
}

FlightFile::FlightFile(base::UniqueFd file, int workers, std::size_t stride)
    : file_(std::move(file)),
      workers_(workers),
      stride_(stride),
      path_(absl::StrCat("/proc/", getpid(), "/fd/", file_.get())) {}

std::vector<RankFlight> FlightFile::Read(int first_rank) const {
  std::vector<RankFlight> flights;
  for (int worker = 0; worker < workers_; ++worker) {
    std::optional<std::vector<FlightRecord>> records = ReadFlightLog(file_.get(), OffsetOf(worker));
    const bool kept = records.has_value();
    flights.push_back(
        {first_rank + worker, std::move(records).value_or(std::vector<FlightRecord>()), kept});
  }
  return flights;
}

std::optional<std::vector<FlightRecord>> ReadFlightLog(int file, std::size_t offset) {
  FlightHeader header;
  if (!ReadAll(file, &header, sizeof header, offset) || !IsKnown(header)) {
    return std::nullopt;
  }
  // Most programs write no log, and then end of what is read. Some do not set `opened` before
  // their first operation.
  if (header.last_ticket == 0) {
    return header.opened == 0 ? std::nullopt : std::make_optional<std::vector<FlightRecord>>();
  }
  std::vector<FlightSlot> slots(kFlightRecords);
  std::vector<FlightSlot> again(kFlightRecords);
  const std::size_t bytes = kFlightRecords * sizeof(FlightSlot);
  if (!ReadAll(file, slots.data(), bytes, offset + sizeof header) ||
      !ReadAll(file, again.data(), bytes, offset + sizeof header) ||
      !ReadAll(file, &header, sizeof header, offset)) {
    return std::nullopt;
  }
  // Read twice to detect torn records: a ticket is 0 while its record is written, so such a record
  // differs between the reads. A program started in place of another may count its tickets from 1:
  // higher ones than its last belong to the earlier program.
  for (std::size_t i = 0; i < kFlightRecords; ++i) {
    const bool whole = std::memcmp(&slots[i], &again[i], sizeof slots[i]) == 0;
    if (!whole || slots[i].ticket > header.last_ticket) slots[i].ticket = 0;
  }
  return FlightsIn(slots);
}

}  // namespace muster::worker

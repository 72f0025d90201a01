// Feeds a damaged disk to what a daemon reads at its start, for libFuzzer (scripts/fuzz.sh) and for
// fuzz_seeds_test: the write-ahead log, the database's tables, and the records in them. The first
// byte of the input chooses which. Of files that are mostly checksums arbitrary bytes would get
// nowhere, so the input says what is damaged in ones that were written here, by the journal itself.
//
// In addition to the sanitizers' checks: an undamaged log is whole, what a check reports is in the
// log, a torn one is whole up to there, and what is restored can be written down and read again.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

#include "rendezvous/core/daemon_core.h"
#include "rendezvous/journal/journal_tables.h"
#include "rendezvous/journal/sqlite_journal.h"
#include "rendezvous/journal/state_directory.h"
#include "rendezvous/journal/wal_check.h"
#include "rendezvous/wire/wire.h"
#include "test/fuzz/fuzz.h"
#include "test/fuzz/quiet_protobuf.h"

namespace muster::rendezvous {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A state directory in memory, a database with some rows, and a log of three transactions.
class Written {
 public:
  Written() {
    const char* const base = std::getenv("TEST_TMPDIR");
    path_ = std::string(base != nullptr ? base : "/dev/shm") + "/muster-fuzz-XXXXXX";
    Check(::mkdtemp(path_.data()) != nullptr);
    const absl::StatusOr<StateDirectory> directory = StateDirectory::Take(path_ + "/state");
    Check(directory.ok());
    Write(*directory, "first", 2);
    // A start copies the log into the database.
    Write(*directory, "second", 3);
    database_ = ReadFile(directory->path() + "/journal.db");
    log_ = ReadFile(directory->path() + "/journal.db-wal");
    Check(database_.size() > 4096 && log_.size() > 4096);
    // The log is a subject of its own: this one is to be read without it (sqlite.org/fileformat2,
    // 1.3.3).
    database_[18] = database_[19] = 1;
    copy_ = path_ + "/copy.db";
    fd_ = ::open(copy_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    Check(fd_ >= 0);
  }
  ~Written() { std::filesystem::remove_all(path_); }
  Written(const Written&) = delete;
  Written& operator=(const Written&) = delete;

  const std::string& log() const { return log_; }
  const std::string& database() const { return database_; }

  // The path of a file with this content.
  const std::string& Put(const std::string& content) const {
    Check(::ftruncate(fd_, static_cast<off_t>(content.size())) == 0);
    Check(::pwrite(fd_, content.data(), content.size(), 0) == static_cast<ssize_t>(content.size()));
    return copy_;
  }

 private:
  static void Write(const StateDirectory& directory, const std::string& run_id, int batches) {
    JournalContents contents;
    const auto journal = JournalFile::Open(directory, {}, contents);
    Check(journal.ok());
    for (int i = 0; i < batches; ++i) {
      const std::string number = std::to_string(i);
      const JournalBatch batch{
          .jobs = {{run_id + number, std::string(50, 'r')}},
          .entries = {{run_id + number, "key", "value" + number}, {run_id + number, "k", "v"}}};
      Check((*journal)->Write(batch).ok());
    }
  }

  std::string path_, copy_, database_, log_;
  int fd_ = -1;
};

// `bytes` is a row of places (two bytes), each with a length (one byte) and as many bytes to be
// there instead; a length of 255 cuts the file off.
std::string Damage(std::string file, std::string_view bytes) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  while (bytes.size() >= 3 && !file.empty()) {
    const std::size_t place = (at(0) * 256u + at(1)) % file.size();
    const unsigned length = at(2);
    bytes.remove_prefix(3);
    if (length == 255) {
      file.resize(place);
      continue;
    }
    const std::size_t size = std::min({std::size_t{length}, bytes.size(), file.size() - place});
    std::memcpy(file.data() + place, bytes.data(), size);
    bytes.remove_prefix(std::min(std::size_t{length}, bytes.size()));
  }
  return file;
}

WalCheck CheckLog(const std::string& log) {
  const WalReader read = [&](std::uint64_t offset, std::size_t size, unsigned char* into) {
    if (offset > log.size() || size > log.size() - offset) return false;
    std::memcpy(into, log.data() + offset, size);
    return true;
  };
  const absl::StatusOr<WalCheck> check = CheckWal(read, log.size());
  Check(check.ok());
  return *check;
}

void CheckDamagedLog(const std::string& original, const std::string& log) {
  const WalCheck check = CheckLog(log);
  if (log == original) Check(check.state == WalCheck::State::kWhole);
  if (check.state == WalCheck::State::kWhole) return;
  Check(check.offset <= log.size());
  if (check.state == WalCheck::State::kDamaged) return Check(!check.what.empty());
  Check(CheckLog(log.substr(0, check.offset)).state == WalCheck::State::kWhole);
}

void CheckTables(const Written& written, const std::string& content) {
  const auto database = Database::Open(written.Put(content), "");
  if (!database.ok()) return;
  JournalContents contents;
  const absl::Status status = ReadTables(**database, contents);
  if (content == written.database()) Check(status.ok() && contents.jobs.size() == 2);
  if (!status.ok()) Check(!status.message().empty());
}

// Records, each with its length before it, and then entries of their jobs' stores.
void CheckRecords(std::string_view bytes) {
  constexpr TimePoint kNow{std::chrono::seconds(1000)};
  DaemonCore core({.max_jobs = 100, .max_nodes = 100, .store_bytes = 4096, .durable = true});
  while (bytes.size() >= 2) {
    const auto length =
        static_cast<unsigned char>(bytes[0]) * 256u + static_cast<unsigned char>(bytes[1]);
    // Memory of its own, so that a look beyond its end is found.
    const std::string own(bytes.substr(2, length));
    bytes.remove_prefix(std::min<std::size_t>(2 + length, bytes.size()));
    const absl::StatusOr<JobRecord> record = RecordFromBytes(own);
    if (!record.ok()) return;
    if (!core.Restore(*record, kNow)) continue;
    core.RestoreEntry(record->run_id, own.substr(0, own.size() / 2), own);
    const std::optional<JobRecord> again = core.coordinator().Record(record->run_id, kNow);
    if (again) Check(RecordFromBytes(ToBytes(*again)).ok());
  }
  while (core.NextMessage()) {
  }
  core.BeginToServe(kNow);
  if (const auto next = core.NextDeadline()) core.Tick(*next);
  core.TakeLog();
}

}  // namespace
}  // namespace muster::rendezvous

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace rendezvous = muster::rendezvous;
  static const rendezvous::Written written;
  muster::QuietProtobuf();
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      rendezvous::CheckDamagedLog(written.log(), rendezvous::Damage(written.log(), bytes));
      break;
    case 1:
      rendezvous::CheckDamagedLog(written.log(), bytes);
      break;
    case 2:
      rendezvous::CheckTables(written, rendezvous::Damage(written.database(), bytes));
      break;
    case 3:
      rendezvous::CheckRecords(bytes);
      break;
  }
  return 0;
}

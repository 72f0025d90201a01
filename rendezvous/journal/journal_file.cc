#include "rendezvous/journal/journal_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/failure.h"
#include "rendezvous/journal/wal_check.h"

namespace muster::rendezvous {
namespace {

absl::Status FileFailure(const char* attempt, const std::string& path) {
  const bool full = errno == ENOSPC || errno == EDQUOT;
  return base::SystemFailure(
      full ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kFailedPrecondition, attempt,
      path);
}

// Makes the file under another name first: a journal.db that is not whole is always a damaged one,
// never one that was not finished.
absl::Status Create(const StateDirectory& directory, const std::string& path,
                    const std::string& vfs) {
  const std::string unfinished = path + ".new";
  for (const char* suffix : {"", "-journal"}) ::unlink((unfinished + suffix).c_str());
  const int fd =
      ::open(unfinished.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return FileFailure("make", unfinished);
  ::close(fd);
  {
    const auto database = Database::Open(unfinished, vfs);
    if (!database.ok()) return database.status();
    absl::Status status = (*database)->Run("PRAGMA synchronous=FULL");
    if (status.ok()) status = MakeTables(**database);
    if (!status.ok()) return status;
  }
  if (::rename(unfinished.c_str(), path.c_str()) != 0) return FileFailure("make", path);
  return directory.Sync();
}

// The journal's settings. Before them the file must not have been read: without the exclusive mode
// SQLite would keep an index of the log in a file of its own.
absl::Status Configure(Database& database) {
  return database.Run(
      "PRAGMA locking_mode=EXCLUSIVE;"
      "PRAGMA synchronous=FULL;"
      "PRAGMA temp_store=MEMORY;"
      // A transaction reaches the log when it is committed, as one run of frames.
      "PRAGMA cache_spill=OFF;"
      "PRAGMA cell_size_check=ON;"
      // Debian's default overwrites what is deleted, at the cost of writing it once more.
      "PRAGMA secure_delete=OFF;"
      // What one big batch made of the log is given back (bytes).
      "PRAGMA journal_size_limit=16777216");
}

absl::Status BeginLog(Database& database) {
  const absl::StatusOr<std::string> mode = database.Query("PRAGMA journal_mode=WAL");
  if (!mode.ok()) return mode.status();
  return *mode == "wal" ? absl::OkStatus()
                        : absl::InternalError(absl::StrCat("journal ", database.path(),
                                                           ": no write-ahead log, but ", *mode));
}

// Whether the files can be opened without SQLite dropping or making up anything. Sets `exists`.
absl::Status CheckFiles(const std::string& path, bool& exists, JournalContents& contents) {
  struct stat info;
  exists = ::lstat(path.c_str(), &info) == 0;
  if (!exists && errno != ENOENT) return FileFailure("look at", path);
  if (exists && !S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat("open ", path, ": it is not a regular file"));
  }
  const std::string log = path + "-wal";
  if (!exists) {
    if (::lstat(log.c_str(), &info) != 0) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(path, " is missing, though ", log, " is there"));
  }
  // SQLite takes an empty file for a new database.
  if (info.st_size == 0) return absl::DataLossError(absl::StrCat(path, " is empty"));
  const absl::StatusOr<WalCheck> check = CheckWalFile(log);
  if (!check.ok()) return check.status();
  if (check->state == WalCheck::State::kDamaged) {
    return absl::DataLossError(absl::StrCat("in ", log, " ", check->what));
  }
  contents.was_torn = check->state == WalCheck::State::kTorn;
  return absl::OkStatus();
}

// A DataLoss with the sentence for whoever starts the daemon; any other Status as it is.
absl::Status Explain(const absl::Status& status, const StateDirectory& directory) {
  if (!absl::IsDataLoss(status)) return status;
  return absl::DataLossError(absl::StrCat(
      "the journal in ", directory.path(), " is damaged (", status.message(),
      "): restore the directory from a backup, or move it away, which forgets the jobs in it"));
}

absl::StatusOr<std::unique_ptr<Database>> Read(const StateDirectory& directory,
                                               const std::string& path, const std::string& vfs,
                                               JournalContents& contents) {
  bool exists = false;
  if (absl::Status sound = CheckFiles(path, exists, contents); !sound.ok()) return sound;
  if (!exists) {
    if (absl::Status made = Create(directory, path, vfs); !made.ok()) return made;
  }
  auto database = Database::Open(path, vfs);
  if (!database.ok()) return database.status();
  if (absl::Status status = Configure(**database); !status.ok()) return status;
  if (absl::Status status = ReadTables(**database, contents); !status.ok()) return status;
  return database;
}

// Counts this start. Leaves the log empty, so that nothing of what a crash left in it is ever
// behind what is written next.
absl::Status Start(Database& database, JournalContents& contents) {
  if (absl::Status status = BeginLog(database); !status.ok()) return status;
  ++contents.incarnation;
  if (absl::Status status = SetIncarnation(database, contents.incarnation); !status.ok()) {
    return status;
  }
  return database.Checkpoint(/*truncate=*/true);
}

}  // namespace

JournalFile::JournalFile(std::unique_ptr<Database> database, BatchWriter writer,
                         SqliteJournalOptions options)
    : options_(std::move(options)), database_(std::move(database)), writer_(std::move(writer)) {}

absl::StatusOr<std::unique_ptr<JournalFile>> JournalFile::Open(const StateDirectory& directory,
                                                               SqliteJournalOptions options,
                                                               JournalContents& contents) {
  const std::string path = directory.path() + "/journal.db";
  auto database = Read(directory, path, options.vfs, contents);
  if (!database.ok()) return Explain(database.status(), directory);
  if (absl::Status started = Start(**database, contents); !started.ok()) {
    return Explain(started, directory);
  }
  absl::StatusOr<BatchWriter> writer = BatchWriter::Prepare(**database);
  if (!writer.ok()) return Explain(writer.status(), directory);
  return std::unique_ptr<JournalFile>(
      new JournalFile(*std::move(database), *std::move(writer), std::move(options)));
}

absl::Status JournalFile::Write(const JournalBatch& batch) {
  if (!broken_.ok()) return broken_;
  Step("before begin");
  absl::Status status = database_->Run("BEGIN IMMEDIATE");
  if (status.ok()) status = writer_.Write(batch);
  if (status.ok()) {
    Step("before commit");
    status = database_->Run("COMMIT");
  }
  if (status.ok()) {
    Step("after commit");
    return status;
  }
  if (database_->InTransaction()) {
    if (absl::Status undone = database_->Run("ROLLBACK"); !undone.ok()) {
      status = absl::InternalError(undone.message());
    }
  }
  is_full_ = absl::IsResourceExhausted(status);
  if (!is_full_) broken_ = status;
  return status;
}

std::uint64_t JournalFile::Bytes() const {
  std::uint64_t bytes = 0;
  for (const char* const suffix : {"", "-wal"}) {
    struct stat file = {};
    if (::stat((database_->path() + suffix).c_str(), &file) == 0) {
      bytes += static_cast<std::uint64_t>(file.st_size);
    }
  }
  return bytes;
}

void JournalFile::Tidy() {
  // On a full disk the log's own space is used again, so that the daemon can at least forget jobs.
  const bool is_due = is_full_ || database_->log_pages() >= options_.checkpoint_pages;
  if (!broken_.ok() || !is_due) return;
  is_full_ = false;
  Step("before checkpoint");
  const absl::Status status = database_->Checkpoint(/*truncate=*/false);
  if (!status.ok() && !absl::IsResourceExhausted(status)) broken_ = status;
  Step("after checkpoint");
}

void JournalFile::Step(const char* step) const {
  if (options_.at_step) options_.at_step(step);
}

}  // namespace muster::rendezvous

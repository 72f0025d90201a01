#include "rendezvous/journal/sqlite_journal.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include "absl/strings/str_cat.h"

#include "base/failure.h"
#include "base/lifetime.h"
#include "rendezvous/journal/wal_check.h"

namespace muster::rendezvous {
namespace {

absl::Status FileFailure(const char* attempt, const std::string& path) {
  const bool full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
  return base::SystemFailure(
      full ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kFailedPrecondition, attempt,
      path);
}

// Creates the file under another name first: an incomplete journal.db always means damage, never an
// unfinished creation.
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

// The journal's settings. Must come before the first read: without exclusive mode SQLite would keep
// an index of the log in a separate file.
absl::Status Configure(Database& database) {
  return database.Run(
      "PRAGMA locking_mode=EXCLUSIVE;"
      "PRAGMA synchronous=FULL;"
      "PRAGMA temp_store=MEMORY;"
      // A transaction goes to the log on commit, in a single run of frames.
      "PRAGMA cache_spill=OFF;"
      "PRAGMA cell_size_check=ON;"
      // Debian's default overwrites deleted data, which costs another write.
      "PRAGMA secure_delete=OFF;"
      // Shrinks the log again after a big batch (bytes).
      "PRAGMA journal_size_limit=16777216");
}

absl::Status BeginLog(Database& database) {
  const absl::StatusOr<std::string> mode = database.Query("PRAGMA journal_mode=WAL");
  if (!mode.ok()) return mode.status();
  return *mode == "wal" ? absl::OkStatus()
                        : absl::InternalError(absl::StrCat("journal ", database.path(),
                                                           ": no write-ahead log, but ", *mode));
}

// Whether SQLite can open the files without dropping or inventing data. Sets `exists`.
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
  // SQLite would take an empty file for a new database.
  if (info.st_size == 0) return absl::DataLossError(absl::StrCat(path, " is empty"));
  const absl::StatusOr<WalCheck> check = CheckWalFile(log);
  if (!check.ok()) return check.status();
  if (check->state == WalCheck::State::kDamaged) {
    return absl::DataLossError(absl::StrCat("in ", log, " ", check->what));
  }
  contents.was_torn = check->state == WalCheck::State::kTorn;
  return absl::OkStatus();
}

// Turns DataLoss into the sentence for the user who starts the daemon; passes on any other Status.
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

// Counts this start. Empties the log, so that leftovers of a crash never follow what is written
// next.
absl::Status Start(Database& database, JournalContents& contents) {
  if (absl::Status status = BeginLog(database); !status.ok()) return status;
  ++contents.incarnation;
  if (absl::Status status = SetIncarnation(database, contents.incarnation); !status.ok()) {
    return status;
  }
  return database.Checkpoint(/*truncate=*/true);
}

// A pool of one thread, with all signals blocked: they are the main thread's.
std::unique_ptr<boost::asio::thread_pool> StartThread() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  auto thread = std::make_unique<boost::asio::thread_pool>(1);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

class SqliteJournal : public Journal {
 public:
  SqliteJournal(boost::asio::io_context& io, StateDirectory directory,
                std::unique_ptr<JournalFile> file)
      : io_(io), directory_(std::move(directory)), file_(std::move(file)), thread_(StartThread()) {}

  void Commit(JournalBatch batch, std::function<void(absl::Status)> done) override {
    if (std::exchange(is_busy_, true)) std::abort();
    boost::asio::post(
        *thread_, [this, batch = std::move(batch), done = std::move(done),
                   watch = lifetime_.watch(), stay = boost::asio::make_work_guard(io_)]() mutable {
          absl::Status status = file_->Write(batch);
          boost::asio::post(io_, [this, status = std::move(status), done = std::move(done),
                                  watch = std::move(watch), bytes = file_->Bytes()]() mutable {
            if (watch.over()) return;
            is_busy_ = false;
            bytes_ = bytes;
            done(std::move(status));
          });
          stay.reset();
          // In the background; only the next batch waits for it.
          file_->Tidy();
        });
  }

  std::uint64_t bytes() const override { return bytes_; }

 private:
  boost::asio::io_context& io_;
  const StateDirectory directory_;
  // Used only by the thread, from the first Commit until the thread has ended.
  const std::unique_ptr<JournalFile> file_;

  bool is_busy_ = false;
  std::uint64_t bytes_ = 0;
  const base::Lifetime lifetime_;
  // Last: joined before the members it uses are destroyed.
  const std::unique_ptr<boost::asio::thread_pool> thread_;
};

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
  // On a full disk the log's space is reused, so that the daemon can at least forget jobs.
  const bool is_due = is_full_ || database_->log_pages() >= options_.checkpoint_pages;
  if (!broken_.ok() || !is_due) return;
  is_full_ = false;
  Step("before checkpoint");
  const absl::Status status = database_->Checkpoint(/*truncate=*/false);
  if (!status.ok() && !absl::IsResourceExhausted(status)) broken_ = status;
  Step("after checkpoint");
}

absl::StatusOr<OpenedJournal> OpenSqliteJournal(boost::asio::io_context& io,
                                                StateDirectory directory,
                                                SqliteJournalOptions options) {
  OpenedJournal opened;
  auto file = JournalFile::Open(directory, std::move(options), opened.contents);
  if (!file.ok()) return file.status();
  opened.journal = std::make_unique<SqliteJournal>(io, std::move(directory), *std::move(file));
  return opened;
}

absl::StatusOr<OpenedJournal> OpenSqliteJournal(boost::asio::io_context& io,
                                                const std::string& directory,
                                                SqliteJournalOptions options) {
  absl::StatusOr<StateDirectory> taken = StateDirectory::Take(directory);
  if (!taken.ok()) return taken.status();
  return OpenSqliteJournal(io, *std::move(taken), std::move(options));
}

}  // namespace muster::rendezvous

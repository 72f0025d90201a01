// The journal in a state directory on disk.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "rendezvous/journal/journal.h"
#include "rendezvous/journal/journal_tables.h"
#include "rendezvous/journal/state_directory.h"

namespace muster::rendezvous {

// The file `journal.db` in a state directory: its format, how a start reads it, and how a batch is
// written.

struct SqliteJournalOptions {
  // After this many pages (of 4 KiB) the write-ahead log is copied into the database and restarted.
  int checkpoint_pages = 1000;

  // For tests. The layer through which SQLite accesses files; empty: the system's.
  std::string vfs = {};
  // For tests. Called on the writing thread before or after each step: "before begin", "before
  // commit", "after commit", "before checkpoint", "after checkpoint".
  std::function<void(const char* step)> at_step = {};
};

// Every call waits for the disk. One thread at a time; not copied.
//
// SQLite in WAL mode, synced at each commit. Closing the file only releases it: every start works
// like a start after a crash.
class JournalFile {
 public:
  // Opens the journal in `directory` (which must outlive it), or creates an empty one; checks all
  // of it, reads it into `contents`, and counts this start. The new incarnation is durable on
  // return.
  //   DataLoss            it is damaged; the sentence says what to do, and nothing was changed
  //   FailedPrecondition  a later version of Muster has written it, or it cannot be opened
  //   ResourceExhausted   the disk is full
  //   Internal            anything else
  static absl::StatusOr<std::unique_ptr<JournalFile>> Open(const StateDirectory& directory,
                                                           SqliteJournalOptions options,
                                                           JournalContents& contents);

  // Writes the batch as Journal::Commit describes it: on OK it is durable.
  absl::Status Write(const JournalBatch& batch);

  // Size of the file and its write-ahead log on disk; 0 if unknown.
  std::uint64_t Bytes() const;

  // Restarts the write-ahead log if it is long. The next Write reports errors; a full disk is not
  // an error here.
  void Tidy();

 private:
  JournalFile(std::unique_ptr<Database> database, BatchWriter writer, SqliteJournalOptions options);

  void Step(const char* step) const {
    if (options_.at_step) options_.at_step(step);
  }

  const SqliteJournalOptions options_;
  const std::unique_ptr<Database> database_;
  BatchWriter writer_;
  // The disk was full at the last Write.
  bool is_full_ = false;
  // The error after which nothing more is written.
  absl::Status broken_;
};

// Opens the journal in `directory`, and holds the directory until the journal is destroyed. On
// return this start is durably counted. Waits for the disk; later writes are done by the journal's
// own thread, so that a slow disk never holds up the loop. `io` must outlive the journal.
//
// Each error is one sentence for the user who starts the daemon:
//   DataLoss             the journal is damaged; nothing was changed
//   FailedPrecondition   the directory cannot be used, or a later version has written the journal
//   ResourceExhausted    the disk is full
//   Internal             anything else
absl::StatusOr<OpenedJournal> OpenSqliteJournal(boost::asio::io_context& io,
                                                StateDirectory directory,
                                                SqliteJournalOptions options = {});
// The same, after taking the directory, with the errors of StateDirectory::Take.
absl::StatusOr<OpenedJournal> OpenSqliteJournal(boost::asio::io_context& io,
                                                const std::string& directory,
                                                SqliteJournalOptions options = {});

}  // namespace muster::rendezvous

// The file `journal.db` in a state directory: what it looks like, what a start reads from it, and
// how a batch is written to it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rendezvous/journal/database.h"
#include "rendezvous/journal/journal.h"
#include "rendezvous/journal/journal_tables.h"
#include "rendezvous/journal/state_directory.h"

namespace muster::rendezvous {

struct SqliteJournalOptions {
  // After how many pages (of 4 KiB) the write-ahead log is copied into the database and restarted.
  int checkpoint_pages = 1000;

  // For tests. The layer through which SQLite accesses files; empty: the system's.
  std::string vfs = {};
  // For tests. Told, on the thread that writes, what comes next or was just done: "before begin",
  // "before commit", "after commit", "before checkpoint", "after checkpoint".
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
  //   DataLoss            it is damaged; the sentence tells what to do, and nothing was changed
  //   FailedPrecondition  a later version of Muster has written it, or it cannot be opened
  //   ResourceExhausted   the disk is full
  //   Internal            anything else
  static absl::StatusOr<std::unique_ptr<JournalFile>> Open(const StateDirectory& directory,
                                                           SqliteJournalOptions options,
                                                           JournalContents& contents);

  // Writes the batch as Journal::Commit describes it: on OK it is durable.
  absl::Status Write(const JournalBatch& batch);

  // What the file and its write-ahead log take on disk; 0 where that cannot be seen.
  std::uint64_t Bytes() const;

  // Restarts the write-ahead log if it has grown long. Errors are reported by the next Write; a
  // full disk is not an error here.
  void Tidy();

 private:
  JournalFile(std::unique_ptr<Database> database, BatchWriter writer, SqliteJournalOptions options);

  void Step(const char* step) const;

  const SqliteJournalOptions options_;
  const std::unique_ptr<Database> database_;
  BatchWriter writer_;
  // The disk was full at the last Write.
  bool is_full_ = false;
  // The error after which nothing is written any more.
  absl::Status broken_;
};

}  // namespace muster::rendezvous

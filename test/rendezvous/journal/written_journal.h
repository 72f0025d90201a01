// Journals that tests write, damage and reopen, without a thread or a loop.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rendezvous/journal/sqlite_journal.h"
#include "rendezvous/journal/state_directory.h"

namespace muster::rendezvous::test {

// A journal and its directory. Destroying it leaves the files as a crash would.
struct OpenedFile {
  std::unique_ptr<StateDirectory> directory;
  std::unique_ptr<JournalFile> file;
  JournalContents contents;
};

absl::StatusOr<OpenedFile> OpenFile(const std::string& directory,
                                    const SqliteJournalOptions& options = {});

// The contents of a journal's files.
struct JournalBytes {
  std::string database;
  std::string log;

  friend bool operator==(const JournalBytes&, const JournalBytes&) = default;

  static JournalBytes ReadFrom(const std::string& directory);
  // Replaces the files in `directory`, without syncing.
  void WriteTo(const std::string& directory) const;
};

// The files that a daemon leaves when it is killed after its first start and `batches` batches of
// the history, all of them still in the log. Aborts on failure.
JournalBytes WrittenJournal(int batches);

}  // namespace muster::rendezvous::test

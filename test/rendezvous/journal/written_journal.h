// Journals that tests write, spoil and open again, without a thread or a loop.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rendezvous/journal/journal_file.h"
#include "rendezvous/journal/state_directory.h"

namespace muster::rendezvous::test {

// A journal and the directory that it has. Destroyed as a crash would leave it.
struct OpenedFile {
  std::unique_ptr<StateDirectory> directory;
  std::unique_ptr<JournalFile> file;
  JournalContents contents;
};

absl::StatusOr<OpenedFile> OpenFile(const std::string& directory,
                                    const SqliteJournalOptions& options = {});

// The files of a journal.
struct JournalBytes {
  std::string database;
  std::string log;

  friend bool operator==(const JournalBytes&, const JournalBytes&) = default;

  static JournalBytes ReadFrom(const std::string& directory);
  // Without syncing, and in place of what is there.
  void WriteTo(const std::string& directory) const;
};

// What a daemon leaves that is killed after its first start and so many batches of the history,
// all of them still in the log. Ends the test program when that fails.
JournalBytes WrittenJournal(int batches);

}  // namespace muster::rendezvous::test

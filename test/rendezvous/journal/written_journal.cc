#include "test/rendezvous/journal/written_journal.h"

#include <cstdlib>
#include <fstream>
#include <utility>

#include "test/rendezvous/journal/history.h"
#include "test/support/temp_dir.h"

namespace muster::rendezvous::test {

absl::StatusOr<OpenedFile> OpenFile(const std::string& directory,
                                    const SqliteJournalOptions& options) {
  auto taken = StateDirectory::Take(directory);
  if (!taken.ok()) return taken.status();
  OpenedFile opened;
  opened.directory = std::make_unique<StateDirectory>(*std::move(taken));
  auto file = JournalFile::Open(*opened.directory, options, opened.contents);
  if (!file.ok()) return file.status();
  opened.file = *std::move(file);
  return opened;
}

JournalBytes JournalBytes::ReadFrom(const std::string& directory) {
  return {muster::test::ReadAll(directory + "/journal.db"),
          muster::test::ReadAll(directory + "/journal.db-wal")};
}

void JournalBytes::WriteTo(const std::string& directory) const {
  std::ofstream(directory + "/journal.db", std::ios::binary) << database;
  std::ofstream(directory + "/journal.db-wal", std::ios::binary) << log;
}

JournalBytes WrittenJournal(int batches) {
  const muster::test::TempDir temp;
  {
    const auto opened = OpenFile(temp.path());
    if (!opened.ok()) std::abort();
    for (int number = 1; number <= batches; ++number) {
      if (!opened->file->Write(BatchNumber(number)).ok()) std::abort();
    }
  }
  return JournalBytes::ReadFrom(temp.path());
}

}  // namespace muster::rendezvous::test

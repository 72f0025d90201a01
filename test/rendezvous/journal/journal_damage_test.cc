// Goal: a damaged journal is refused, or only its correct part is used; nothing that was
// acknowledged is lost silently. Method: truncate and change the files of a killed daemon byte by
// byte, and open them.
#include <sqlite3.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "test/rendezvous/journal/fault_vfs.h"
#include "test/rendezvous/journal/history.h"
#include "test/rendezvous/journal/written_journal.h"
#include "test/support/temp_dir.h"

namespace muster::rendezvous {
namespace {

using muster::test::TempDir;
using test::BatchesIn;
using test::JournalBytes;
using testing::HasSubstr;

constexpr int kBatches = 12;

class JournalDamageTest : public testing::Test {
 protected:
  // Opens files with these bytes: the number of batches in them, nullopt if the contents never were
  // a valid state, or the error. Syncs are skipped, for speed.
  absl::StatusOr<std::optional<int>> Open(const JournalBytes& bytes) {
    bytes.WriteTo(temp_.path());
    test::FaultVfs vfs;
    const auto opened = test::OpenFile(temp_.path(), {.vfs = test::FaultVfs::kName});
    if (!opened.ok()) {
      // A refused journal is kept for inspection.
      EXPECT_EQ(JournalBytes::ReadFrom(temp_.path()), bytes);
      return opened.status();
    }
    const std::optional<int> batches = BatchesIn(opened->contents);
    // And it is usable.
    if (batches.has_value()) {
      EXPECT_TRUE(opened->file->Write(test::BatchNumber(*batches + 1)).ok());
    }
    return batches;
  }

  // The database after a checkpoint, with an empty log.
  JournalBytes Checkpointed() {
    const TempDir temp;
    written_.WriteTo(temp.path());
    EXPECT_TRUE(test::OpenFile(temp.path()).ok());
    JournalBytes bytes = JournalBytes::ReadFrom(temp.path());
    EXPECT_EQ(bytes.log, "");
    return bytes;
  }

  void ExpectRefused(const JournalBytes& bytes, const std::string& because) {
    const auto refused = Open(bytes);
    ASSERT_TRUE(absl::IsDataLoss(refused.status())) << refused.status();
    const std::string sentence(refused.status().message());
    EXPECT_THAT(sentence, HasSubstr("the journal in " + temp_.path() + " is damaged ("));
    EXPECT_THAT(sentence, HasSubstr(because));
    EXPECT_THAT(sentence, HasSubstr("restore the directory from a backup, or move it away"));
    EXPECT_THAT(sentence, Not(HasSubstr("\n")));
  }

  TempDir temp_;
  const JournalBytes written_ = test::WrittenJournal(kBatches);
};

TEST_F(JournalDamageTest, LogThatIsCutIsABeginningOfTheHistory) {
  int before = 0;
  for (std::size_t size = 0; size <= written_.log.size(); size += 397) {
    const auto found = Open({written_.database, written_.log.substr(0, size)});
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_TRUE(found->has_value()) << "cut at " << size;
    EXPECT_GE(**found, before);
    before = **found;
  }
  EXPECT_EQ(before, kBatches - 1);
  EXPECT_EQ(*Open(written_), kBatches);
}

TEST_F(JournalDamageTest, TornEndIsTold) {
  JournalBytes torn = written_;
  torn.log.resize(torn.log.size() - 7);
  torn.WriteTo(temp_.path());
  const auto opened = test::OpenFile(temp_.path());
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_TRUE(opened->contents.was_torn);
  EXPECT_EQ(BatchesIn(opened->contents), kBatches - 1);
}

TEST_F(JournalDamageTest, ChangedByteOfTheLogIsRefusedOrInTheLastBatch) {
  std::mt19937 random(5);
  int refused = 0;
  for (int round = 0; round < 400; ++round) {
    JournalBytes bytes = written_;
    // Every other one in a header.
    std::size_t at = random() % bytes.log.size();
    if (round % 2 == 0) at = at < 4152 ? at % 32 : 32 + (at - 32) / 4120 * 4120 + at % 24;
    bytes.log[at] = static_cast<char>(bytes.log[at] ^ (1 + random() % 255));
    const auto found = Open(bytes);
    if (!found.ok()) {
      EXPECT_TRUE(absl::IsDataLoss(found.status())) << found.status();
      ++refused;
      continue;
    }
    ASSERT_TRUE(found->has_value()) << "byte " << at;
    EXPECT_GE(**found, kBatches - 1) << "byte " << at;
  }
  EXPECT_GT(refused, 200);
}

TEST_F(JournalDamageTest, SentenceNamesTheLogAndTheFrame) {
  JournalBytes bytes = written_;
  bytes.log[5000] ^= 1;
  ExpectRefused(bytes, "journal.db-wal the frame at byte 4152 has a wrong checksum");
  bytes = written_;
  bytes.log[20] ^= 1;
  ExpectRefused(bytes, "journal.db-wal its header has a wrong checksum");
}

TEST_F(JournalDamageTest, ChangedByteOfTheDatabaseIsRefusedOrWithoutEffect) {
  const JournalBytes whole = Checkpointed();
  std::mt19937 random(6);
  int refused = 0;
  for (int round = 0; round < 1500; ++round) {
    JournalBytes bytes = whole;
    // Each byte of the file's header once; then at random, every other one at the start of a page,
    // where its pointers are.
    std::size_t at = random() % bytes.database.size();
    if (round % 2 == 0) at = at / 4096 * 4096 + at % 64;
    if (round < 100) at = static_cast<std::size_t>(round);
    bytes.database[at] = static_cast<char>(bytes.database[at] ^ (1 + random() % 255));
    const auto found = Open(bytes);
    if (!found.ok()) {
      ++refused;
      continue;
    }
    ASSERT_EQ(*found, kBatches) << "byte " << at;
    // The batch written by Open must be there as well.
    const auto again = Open(JournalBytes::ReadFrom(temp_.path()));
    ASSERT_TRUE(again.ok()) << "byte " << at << ": " << again.status();
    EXPECT_EQ(*again, kBatches + 1) << "byte " << at;
  }
  EXPECT_GT(refused, 500);
}

TEST_F(JournalDamageTest, ChangedValueIsFoundByItsRow) {
  JournalBytes bytes = Checkpointed();
  // The record of the counter's job is its number as text, which SQLite does not check.
  const std::string row = "counter" + std::to_string(kBatches);
  const std::size_t at = bytes.database.find(row);
  ASSERT_NE(at, std::string::npos);
  ++bytes.database[at + row.size() - 1];
  ExpectRefused(bytes, "a row of its table jobs has a wrong checksum");
}

TEST_F(JournalDamageTest, DatabaseThatIsCutIsRefused) {
  const JournalBytes whole = Checkpointed();
  for (const std::size_t pages : {1, 2, 3}) {
    JournalBytes bytes = whole;
    ASSERT_GT(bytes.database.size(), pages * 4096);
    bytes.database.resize(bytes.database.size() - pages * 4096);
    ExpectRefused(bytes, "");
    bytes.database.resize(pages * 4096 - 100);
    ExpectRefused(bytes, "");
  }
  ExpectRefused({"", ""}, "journal.db is empty");
  ExpectRefused({"no database", ""}, "file is not a database");
}

TEST_F(JournalDamageTest, LogWithoutItsDatabaseIsRefused) {
  temp_.Write("journal.db-wal", written_.log);
  const auto refused = test::OpenFile(temp_.path());
  EXPECT_TRUE(absl::IsDataLoss(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("journal.db is missing"));
}

TEST_F(JournalDamageTest, DirectoryThatWasMovedAwayIsBegunAnew) {
  written_.WriteTo(temp_.path());
  for (const char* name : {"journal.db", "journal.db-wal"}) {
    std::filesystem::remove(temp_.Path(name));
  }
  const auto opened = test::OpenFile(temp_.path());
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->contents.incarnation, 1U);
}

TEST_F(JournalDamageTest, FilesThatAreLinksAreNotFollowed) {
  const TempDir elsewhere;
  written_.WriteTo(elsewhere.path());
  for (const char* name : {"journal.db", "journal.db-wal"}) {
    const TempDir temp;
    written_.WriteTo(temp.path());
    std::filesystem::remove(temp.Path(name));
    std::filesystem::create_symlink(elsewhere.Path(name), temp.Path(name));
    const auto refused = test::OpenFile(temp.path());
    EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  }
  EXPECT_EQ(JournalBytes::ReadFrom(elsewhere.path()), written_);
}

TEST_F(JournalDamageTest, LaterFormatIsRefusedAsSuch) {
  written_.WriteTo(temp_.path());
  const std::int64_t format = 2;
  std::string row;
  for (const std::string& column :
       {std::string("format"), std::string(reinterpret_cast<const char*>(&format), 8)}) {
    const std::uint64_t size = column.size();
    row.append(reinterpret_cast<const char*>(&size), 8).append(column);
  }
  const uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(row.data()), row.size());
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(temp_.Path("journal.db").c_str(), &database), SQLITE_OK);
  const std::string sql = "UPDATE meta SET value = 2, crc = " + std::to_string(crc) +
                          " WHERE name = CAST('format' AS BLOB); CREATE TABLE later(x)";
  EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(database);

  const auto refused = test::OpenFile(temp_.path());
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("has format 2, and this version of Muster knows format 1"));
}

}  // namespace
}  // namespace muster::rendezvous

#include "rendezvous/journal/sqlite_journal.h"

#include <sys/stat.h>

#include <filesystem>
#include <future>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/rendezvous/journal/history.h"
#include "test/support/run_until.h"
#include "test/support/temp_dir.h"

namespace muster::rendezvous {
namespace {

using muster::test::RunUntil;
using muster::test::TempDir;
using test::From;
using test::Remembered;

class SqliteJournalTest : public testing::Test {
 protected:
  OpenedJournal Open(const SqliteJournalOptions& options = {}) {
    auto opened = OpenSqliteJournal(io_, directory_, options);
    EXPECT_TRUE(opened.ok()) << opened.status();
    if (!opened.ok()) std::abort();
    return *std::move(opened);
  }

  absl::Status Commit(Journal& journal, JournalBatch batch) {
    std::optional<absl::Status> ended;
    journal.Commit(std::move(batch), [&](absl::Status status) { ended = std::move(status); });
    EXPECT_FALSE(ended.has_value()) << "called within Commit";
    EXPECT_TRUE(RunUntil(io_, [&] { return ended.has_value(); }));
    return ended.value_or(absl::DeadlineExceededError("the journal does not answer"));
  }

  boost::asio::io_context io_;
  TempDir temp_;
  const std::string directory_ = temp_.Path("state");
};

TEST_F(SqliteJournalTest, NewOneIsEmpty) {
  const OpenedJournal opened = Open();
  EXPECT_EQ(opened.contents.incarnation, 1U);
  EXPECT_FALSE(opened.contents.was_torn);
  EXPECT_EQ(From(opened.contents), Remembered{});
}

TEST_F(SqliteJournalTest, RemembersAnyBytes) {
  const std::string binary("\0\xff\x80 'key'\n", 10);
  Remembered expected;
  JournalBatch batch;
  batch.jobs = {{"job", std::string("record\0", 7)}, {"empty record", ""}, {binary, binary}};
  batch.entries = {{"job", binary, binary},
                   {"job", "", "value of the empty key"},
                   {"job", "empty value", ""},
                   {"job", "large", std::string(3 << 20, 'x')},
                   // Only a store, no job.
                   {"", "key", "value"}};
  expected.Apply(batch);
  {
    const OpenedJournal opened = Open();
    EXPECT_EQ(opened.journal->bytes(), 0u) << "not looked at yet";
    EXPECT_TRUE(Commit(*opened.journal, batch).ok());
    EXPECT_GT(opened.journal->bytes(), std::uint64_t{3} << 20);
  }
  EXPECT_EQ(From(Open().contents), expected);
}

TEST_F(SqliteJournalTest, BytesDoNotMoveBetweenRunIdAndKey) {
  {
    const OpenedJournal opened = Open();
    EXPECT_TRUE(Commit(*opened.journal, {.entries = {{"a", "bc", "1"}, {"ab", "c", "2"}}}).ok());
    EXPECT_TRUE(Commit(*opened.journal, {.entries = {{"a", "bc", std::nullopt}}}).ok());
  }
  EXPECT_EQ(From(Open().contents).entries, (decltype(Remembered::entries){{{"ab", "c"}, "2"}}));
}

TEST_F(SqliteJournalTest, ForgetsAJobWithItsStoreAndNoOther) {
  {
    const OpenedJournal opened = Open();
    JournalBatch first{.jobs = {{"a", "1"}, {"b", "2"}},
                       .entries = {{"a", "k", "1"}, {"a", "l", "1"}, {"b", "k", "2"}}};
    EXPECT_TRUE(Commit(*opened.journal, first).ok());
    EXPECT_TRUE(Commit(*opened.journal, {.jobs = {{"a", std::nullopt}}}).ok());
    // Something that does not exist can be forgotten, too.
    EXPECT_TRUE(Commit(*opened.journal, {.jobs = {{"a", std::nullopt}, {"c", std::nullopt}},
                                         .entries = {{"c", "k", std::nullopt}}})
                    .ok());
  }
  Remembered expected;
  expected.jobs = {{"b", "2"}};
  expected.entries = {{{"b", "k"}, "2"}};
  EXPECT_EQ(From(Open().contents), expected);
}

TEST_F(SqliteJournalTest, JobThatBeginsAnewInOneBatchHasOnlyItsNewStore) {
  {
    const OpenedJournal opened = Open();
    EXPECT_TRUE(
        Commit(*opened.journal, {.jobs = {{"a", "old"}}, .entries = {{"a", "old", "1"}}}).ok());
    EXPECT_TRUE(Commit(*opened.journal, {.jobs = {{"a", std::nullopt}, {"a", "new"}},
                                         .entries = {{"a", "new", "2"}}})
                    .ok());
  }
  Remembered expected;
  expected.jobs = {{"a", "new"}};
  expected.entries = {{{"a", "new"}, "2"}};
  EXPECT_EQ(From(Open().contents), expected);
}

TEST_F(SqliteJournalTest, EachStartIsCounted) {
  for (std::uint64_t start = 1; start <= 4; ++start) {
    EXPECT_EQ(Open().contents.incarnation, start);
  }
}

TEST_F(SqliteJournalTest, LogStaysShortOverManyBatches) {
  constexpr int kBatches = 600;
  {
    const OpenedJournal opened = Open({.checkpoint_pages = 50});
    for (int number = 1; number <= kBatches; ++number) {
      ASSERT_TRUE(Commit(*opened.journal, test::BatchNumber(number)).ok());
    }
    // A batch of this history is some ten pages at most.
    EXPECT_LT(std::filesystem::file_size(directory_ + "/journal.db-wal"), 80U * 4096);
  }
  EXPECT_EQ(test::BatchesIn(Open().contents), kBatches);
}

TEST_F(SqliteJournalTest, FilesAreTheOwnersAlone) {
  const OpenedJournal opened = Open();
  EXPECT_TRUE(Commit(*opened.journal, test::BatchNumber(1)).ok());
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(directory_)) {
    struct stat info;
    ASSERT_EQ(::stat(file.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0600U) << file.path();
    ++files;
  }
  // The lock, the database and its log; nothing shared between processes.
  EXPECT_EQ(files, 3);
}

TEST_F(SqliteJournalTest, SecondDaemonIsRefused) {
  const OpenedJournal opened = Open();
  const auto second = OpenSqliteJournal(io_, directory_);
  EXPECT_TRUE(absl::IsAlreadyExists(second.status())) << second.status();
  EXPECT_TRUE(Commit(*opened.journal, test::BatchNumber(1)).ok());
}

TEST_F(SqliteJournalTest, LoopGoesOnWhileTheDiskIsSlow) {
  std::promise<void> disk;
  const std::shared_future<void> ready = disk.get_future().share();
  const OpenedJournal opened = Open({.at_step = [&](const std::string& step) {
    if (step == "before commit") ready.wait();
  }});
  bool done = false;
  opened.journal->Commit(test::BatchNumber(1), [&](const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    done = true;
  });
  int turns = 0;
  EXPECT_TRUE(RunUntil(io_, [&] { return ++turns > 20; }));
  EXPECT_FALSE(done);
  disk.set_value();
  EXPECT_TRUE(RunUntil(io_, [&] { return done; }));
}

TEST_F(SqliteJournalTest, TakesTheNextBatchWithinDone) {
  const OpenedJournal opened = Open();
  int acknowledged = 0;
  std::function<void(absl::Status)> next = [&](const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    if (++acknowledged < 5) opened.journal->Commit(test::BatchNumber(acknowledged + 1), next);
  };
  opened.journal->Commit(test::BatchNumber(1), next);
  EXPECT_TRUE(RunUntil(io_, [&] { return acknowledged == 5; }));
}

TEST_F(SqliteJournalTest, DestroyedWithABatchUnderWayTellsNobody) {
  {
    const OpenedJournal opened = Open();
    opened.journal->Commit(test::BatchNumber(1), [](const absl::Status&) { FAIL(); });
  }
  io_.run();
  EXPECT_TRUE(test::BatchesIn(Open().contents).has_value());
}

using SqliteJournalDeathTest = SqliteJournalTest;

TEST_F(SqliteJournalDeathTest, SecondBatchBeforeTheFirstIsDoneAborts) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(
      {
        const OpenedJournal opened = Open();
        opened.journal->Commit(test::BatchNumber(1), [](const absl::Status&) {});
        opened.journal->Commit(test::BatchNumber(2), [](const absl::Status&) {});
      },
      "");
}

}  // namespace
}  // namespace muster::rendezvous

// A daemon is killed (SIGKILL) at every step of writing its journal, repeatedly on the same
// directory: the next start finds everything that it acknowledged, and no partial batch.
#include <signal.h>

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "rendezvous/journal/sqlite_journal.h"
#include "test/rendezvous/journal/history.h"
#include "test/support/command.h"
#include "test/support/temp_dir.h"

namespace muster::rendezvous {
namespace {

using muster::test::Command;
using muster::test::TempDir;

const char* const kChild = "test/rendezvous/journal/journal_child";

// The number after the last `word` in a child's output.
std::optional<int> LastNumber(const std::string& said, const std::string& word) {
  const std::size_t at = said.rfind(word + " ");
  if (at == std::string::npos) return std::nullopt;
  return std::atoi(said.c_str() + at + word.size() + 1);
}

class JournalKillTest : public testing::Test {
 protected:
  // Runs a child until it has killed itself, and checks what it left.
  void KillAt(const std::string& directory, const std::string& step, int count) {
    SCOPED_TRACE(step + " " + std::to_string(count));
    Command child({kChild, directory, step, std::to_string(count)});
    ASSERT_EQ(child.Wait(), -SIGKILL) << child.err();
    const int acked = LastNumber(child.out(), "acked").value_or(acked_);

    auto taken = StateDirectory::Take(directory);
    ASSERT_TRUE(taken.ok()) << taken.status();
    JournalContents contents;
    const auto file = JournalFile::Open(*taken, {}, contents);
    ASSERT_TRUE(file.ok()) << file.status();
    const std::optional<int> there = test::BatchesIn(contents);
    ASSERT_TRUE(there.has_value()) << "a batch is there in part";
    // The batch being written may be there too.
    EXPECT_GE(*there, acked);
    EXPECT_LE(*there, acked + 1);
    EXPECT_GT(contents.incarnation, incarnation_);
    const std::optional<int> told = LastNumber(child.out(), "incarnation");
    if (told.has_value()) {
      EXPECT_EQ(contents.incarnation, static_cast<std::uint64_t>(*told) + 1);
    }
    incarnation_ = contents.incarnation;
    acked_ = *there;
  }

  TempDir temp_;
  int acked_ = 0;
  std::uint64_t incarnation_ = 0;
};

TEST_F(JournalKillTest, AtEachStepOfTheJournal) {
  for (const char* step : {"before begin", "before commit", "after commit"}) {
    for (const int count : {1, 2, 7, 40}) KillAt(temp_.Path("state"), step, count);
  }
  for (const char* step : {"before checkpoint", "after checkpoint"}) {
    for (const int count : {1, 2, 3}) KillAt(temp_.Path("state"), step, count);
  }
  EXPECT_GT(acked_, 100);
}

TEST_F(JournalKillTest, WithinAWrite) {
  for (int count = 1; count <= 60; ++count) KillAt(temp_.Path("state"), "write", count);
  EXPECT_GT(acked_, 20);
}

TEST_F(JournalKillTest, BeforeASync) {
  for (int count = 1; count <= 30; ++count) KillAt(temp_.Path("state"), "sync", count);
  EXPECT_GT(acked_, 20);
}

TEST_F(JournalKillTest, WithinTheFirstStart) {
  for (int count = 1; count <= 20; ++count) {
    acked_ = 0;
    incarnation_ = 0;
    KillAt(temp_.Path("write-" + std::to_string(count)), "write", count);
    acked_ = 0;
    incarnation_ = 0;
    KillAt(temp_.Path("sync-" + std::to_string(count)), "sync", count);
  }
}

}  // namespace
}  // namespace muster::rendezvous

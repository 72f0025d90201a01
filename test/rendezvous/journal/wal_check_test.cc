// Goal: no acknowledged transaction is lost silently, and a torn end is not mistaken for damage.
// Method: damage a log that SQLite wrote, byte by byte and sector by sector. The headers of the
// intact frames tell to which transaction a byte belongs.
#include "rendezvous/journal/wal_check.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/rendezvous/journal/history.h"
#include "test/rendezvous/journal/written_journal.h"
#include "test/support/temp_dir.h"

namespace muster::rendezvous {
namespace {

using State = WalCheck::State;
using muster::test::TempDir;

constexpr std::size_t kHeader = 32;
constexpr std::size_t kFrameHeader = 24;
constexpr std::size_t kFrame = kFrameHeader + 4096;

WalCheck Check(const std::string& log) {
  const WalReader read = [&](std::uint64_t offset, std::size_t size, unsigned char* into) {
    if (offset + size > log.size()) return false;
    std::memcpy(into, log.data() + offset, size);
    return true;
  };
  const auto check = CheckWal(read, log.size());
  EXPECT_TRUE(check.ok()) << check.status();
  return check.value_or(WalCheck{});
}

// Where each transaction ends.
std::vector<std::size_t> Commits(const std::string& log) {
  std::vector<std::size_t> commits;
  for (std::size_t at = kHeader; at + kFrame <= log.size(); at += kFrame) {
    if (log.compare(at + 4, 4, std::string(4, '\0')) != 0) commits.push_back(at + kFrame);
  }
  return commits;
}

class WalCheckTest : public testing::Test {
 protected:
  const std::string log_ = test::WrittenJournal(12).log;
  const std::vector<std::size_t> commits_ = Commits(log_);
  // Where the last transaction begins.
  const std::size_t last_ = commits_[commits_.size() - 2];
};

TEST_F(WalCheckTest, LogThatIsEmptyOrWholeIs) {
  EXPECT_EQ(Check("").state, State::kWhole);
  EXPECT_EQ(Check(log_).state, State::kWhole);
  EXPECT_EQ(Check(log_).offset, log_.size());
  ASSERT_EQ(commits_.size(), 12U);
}

TEST_F(WalCheckTest, CutAnywhereItIsTornOrShorterButNeverDamaged) {
  for (std::size_t size = 0; size < log_.size(); size += size < 200 ? 1 : 61) {
    const WalCheck check = Check(log_.substr(0, size));
    ASSERT_NE(check.state, State::kDamaged) << size;
    std::size_t whole = size < kHeader ? 0 : kHeader;
    for (const std::size_t commit : commits_) {
      if (commit <= size) whole = commit;
    }
    EXPECT_EQ(check.offset, whole) << size;
    EXPECT_EQ(check.state, whole == size ? State::kWhole : State::kTorn) << size;
  }
}

TEST_F(WalCheckTest, NoChangedByteLosesAnyButTheLastTransaction) {
  std::mt19937 random(1);
  for (std::size_t at = 0; at < log_.size(); ++at) {
    const bool in_header = at < kHeader || (at - kHeader) % kFrame < kFrameHeader;
    // Every byte of every header, and one in a hundred of the pages.
    if (!in_header && random() % 100 != 0) continue;
    for (const int change : {0x00, 0x01, 0x80, 0xff, -1}) {
      std::string log = log_;
      // Flipped bits, or (-1) a byte that is zero now, as from a lost block.
      log[at] = change < 0 ? '\0' : static_cast<char>(log[at] ^ change);
      if (log == log_) continue;
      const WalCheck check = Check(log);
      if (check.state == State::kDamaged) {
        EXPECT_NE(check.what, "");
        EXPECT_LE(check.offset, at);
        continue;
      }
      ASSERT_GE(at, last_) << "byte " << at << " changed by " << change;
      EXPECT_EQ(check.offset, last_);
    }
  }
}

TEST_F(WalCheckTest, LostBlockBeforeTwoWholeTransactionsIsDamage) {
  constexpr std::size_t kSector = 512;
  // Where the last but one begins.
  const std::size_t last_two = commits_[commits_.size() - 3];
  for (std::size_t at = 0; at + kSector <= last_two; at += kSector) {
    std::string log = log_;
    log.replace(at, kSector, kSector, '\0');
    EXPECT_TRUE(log == log_ || Check(log).state == State::kDamaged) << at;
  }
}

TEST_F(WalCheckTest, NoTornLastTransactionIsDamage) {
  constexpr std::size_t kSector = 512;
  std::mt19937 random(2);
  // The former contents of the file: nothing, or the frames of a former log.
  std::string former = test::WrittenJournal(30).log;
  ASSERT_GE(former.size(), log_.size());
  for (const std::string& before : {std::string(log_.size(), '\0'), former}) {
    for (int round = 0; round < 500; ++round) {
      std::bernoulli_distribution is_lost(0.05 + 0.9 * (round % 10) / 10);
      std::string log = log_;
      for (std::size_t at = last_; at < log.size();) {
        const std::size_t end = std::min(log.size(), (at / kSector + 1) * kSector);
        if (is_lost(random)) log.replace(at, end - at, before, at, end - at);
        at = end;
      }
      ASSERT_NE(Check(log).state, State::kDamaged) << "round " << round;
      ASSERT_GE(Check(log).offset, last_) << "round " << round;
    }
  }
}

TEST_F(WalCheckTest, FramesOfAFormerLogFollowAWholeOne) {
  const TempDir temp;
  {
    const auto opened = test::OpenFile(temp.path(), {.checkpoint_pages = 40});
    ASSERT_TRUE(opened.ok()) << opened.status();
    int number = 0;
    const std::string path = temp.Path("journal.db-wal");
    const auto begun = [&] { return muster::test::ReadAll(path).substr(0, kHeader); };
    ASSERT_TRUE(opened->file->Write(test::BatchNumber(++number)).ok());
    const std::string first = begun();
    while (begun() == first) {
      opened->file->Tidy();
      ASSERT_TRUE(opened->file->Write(test::BatchNumber(++number)).ok());
    }
  }
  std::string log = test::JournalBytes::ReadFrom(temp.path()).log;
  WalCheck check = Check(log);
  EXPECT_EQ(check.state, State::kWhole);
  EXPECT_LT(check.offset, log.size());
  // The same for a log cut off within such a frame.
  log.resize(log.size() - 7);
  EXPECT_EQ(Check(log).state, State::kWhole);
}

TEST_F(WalCheckTest, HeaderThatIsNotSyncedYetIsTorn) {
  EXPECT_EQ(Check(std::string(kHeader, '\0')).state, State::kTorn);
  EXPECT_EQ(Check(log_.substr(0, 20)).state, State::kTorn);
}

TEST_F(WalCheckTest, FileThatIsMissingIsWhole) {
  const TempDir temp;
  const auto check = CheckWalFile(temp.Path("none"));
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_EQ(check->state, State::kWhole);
}

TEST_F(WalCheckTest, FileIsReadAsTheBytesAre) {
  const TempDir temp;
  std::string log = log_;
  log[kHeader + 100] ^= 1;
  const auto check = CheckWalFile(temp.Write("log", log));
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_EQ(check->state, State::kDamaged);
  EXPECT_EQ(check->offset, kHeader);
}

TEST_F(WalCheckTest, LinkIsNotFollowed) {
  const TempDir temp;
  std::filesystem::create_symlink(temp.Write("log", log_), temp.Path("link"));
  const auto check = CheckWalFile(temp.Path("link"));
  EXPECT_TRUE(absl::IsFailedPrecondition(check.status())) << check.status();
}

}  // namespace
}  // namespace muster::rendezvous

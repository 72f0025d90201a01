// The state directory is on its own disk of 1 MiB: a tmpfs in this process's mount namespace, which
// disappears with the process.
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "rendezvous/journal/sqlite_journal.h"
#include "test/rendezvous/journal/history.h"
#include "test/support/run_until.h"
#include "test/support/temp_dir.h"

namespace muster::rendezvous {
namespace {

using muster::test::RunUntil;
using muster::test::TempDir;

// Whether this process, which must have one thread, has mounts of its own now.
bool HasOwnMounts() {
  if (::unshare(::geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  return ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

class JournalDiskFullTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasOwnMounts() ||
        ::mount("tmpfs", temp_.path().c_str(), "tmpfs", 0, "size=1m,mode=0700") != 0) {
      GTEST_SKIP() << "SKIPPED, a full disk was not tried: this process may not mount one: "
                   << std::strerror(errno);
    }
    is_mounted_ = true;
  }
  void TearDown() override {
    if (!is_mounted_) return;
    EXPECT_EQ(::umount(temp_.path().c_str()), 0) << std::strerror(errno);
  }

  // Writes a file until there is no space left.
  void FillDisk() {
    std::ofstream ballast(temp_.Path("ballast"));
    while (ballast << std::string(4096, 'x') << std::flush) continue;
  }

  absl::Status Commit(Journal& journal, const JournalBatch& batch) {
    std::optional<absl::Status> ended;
    journal.Commit(batch, [&](absl::Status status) { ended = std::move(status); });
    EXPECT_TRUE(RunUntil(io_, [&] { return ended.has_value(); }));
    return ended.value_or(absl::DeadlineExceededError("the journal does not answer"));
  }

  TempDir temp_;
  bool is_mounted_ = false;
  boost::asio::io_context io_;
};

TEST_F(JournalDiskFullTest, BatchesAreRefusedUntilThereIsSpace) {
  int number = 0;
  {
    const auto opened = OpenSqliteJournal(io_, temp_.Path("state"));
    ASSERT_TRUE(opened.ok()) << opened.status();
    ASSERT_TRUE(Commit(*opened->journal, test::BatchNumber(++number)).ok());
    FillDisk();
    // A few more may fit into the log's own space.
    absl::Status status;
    while (status.ok() && number < 1000) {
      status = Commit(*opened->journal, test::BatchNumber(++number));
    }
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    ASSERT_EQ(::unlink(temp_.Path("ballast").c_str()), 0);
    status = Commit(*opened->journal, test::BatchNumber(number));
    EXPECT_TRUE(status.ok()) << status;
  }
  const auto opened = OpenSqliteJournal(io_, temp_.Path("state"));
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(test::BatchesIn(opened->contents), number);
}

TEST_F(JournalDiskFullTest, StartOnAFullDiskSaysSo) {
  FillDisk();
  const auto opened = OpenSqliteJournal(io_, temp_.path());
  EXPECT_TRUE(absl::IsResourceExhausted(opened.status())) << opened.status();
}

}  // namespace
}  // namespace muster::rendezvous

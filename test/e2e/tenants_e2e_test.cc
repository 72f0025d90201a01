// One musterd for several users, one of whom has a journal that takes long to read.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"
#include "test/support/process_scan.h"
#include "test/support/wait_until.h"

namespace muster::test {
namespace {

using Words = std::vector<std::string>;

// Blocks everyone who opens the file, for at most /proc/sys/fs/lease-break-time (45 s). It must not
// be open elsewhere.
class SlowFile {
 public:
  explicit SlowFile(const std::string& path) : fd_(open(path.c_str(), O_RDWR | O_CLOEXEC)) {
    // The kernel's signal that a process waits; its default action would kill this process.
    is_held_ = fcntl(fd_, F_SETSIG, SIGURG) == 0 && fcntl(fd_, F_SETLEASE, F_WRLCK) == 0;
  }
  ~SlowFile() { close(fd_); }
  SlowFile(const SlowFile&) = delete;
  SlowFile& operator=(const SlowFile&) = delete;

  bool is_held() const { return is_held_; }
  bool is_waited_for() const { return fcntl(fd_, F_GETLEASE) != F_WRLCK; }
  void LetGo() { fcntl(fd_, F_SETLEASE, F_UNLCK); }

 private:
  const int fd_;
  bool is_held_ = false;
};

class TenantsTest : public E2eTest {
 protected:
  TenantsTest() {
    for (const char* tenant : {"alice", "bob"}) {
      EXPECT_TRUE(Succeeds({MusterPath(), "token", "new", Path(tenant)}));
    }
  }

  std::string Path(const std::string& tenant) const { return E2eTest::Path("tokens/" + tenant); }

  void StartDaemon() {
    daemon_.emplace(Words{DaemonPath(), "--listen=" + port_.endpoint(),
                          "--tokens=" + E2eTest::Path("tokens"),
                          "--state-dir=" + E2eTest::Path("state")});
    ASSERT_TRUE(daemon_->WaitForErr("listening on")) << daemon_->err();
  }
  void KillDaemon() {
    const std::vector<pid_t> children = ChildrenOf(daemon_->pid());
    ASSERT_EQ(children.size(), 1u);
    kill(children.front(), SIGKILL);
  }

  Words At(const std::string& token_file) const {
    return {"--rdzv-endpoint=" + port_.endpoint(), "--token-file=" + token_file};
  }
  // A node of a job of this name that runs until the file `end` is there.
  Command Join(const std::string& tenant) {
    Words flags = At(Path(tenant));
    flags.insert(flags.end(), {"--nnodes=1", "--rdzv-id=job", "--rdzv-conf=is_host=0"});
    return StartAgent(flags, MusterPath() + " kv set owner " + tenant + "; echo started" +
                                 "; while ! test -e " + E2eTest::Path("end") +
                                 "; do sleep 0.02; done; " + MusterPath() + " kv get owner");
  }
  // What `muster status` prints, or its error.
  std::string Status(const std::string& token_file) const {
    Words words = At(token_file);
    words.insert(words.begin(), {MusterPath(), "status"});
    Command status(words);
    return status.Wait() == 0 ? status.out() : status.err();
  }

  HeldPort port_;
  std::optional<Command> daemon_;
};

// "All workers of all users were killed when the daemon was updated. It had to read 500 MB."
TEST_F(TenantsTest, NoWorkerIsLostHoweverLongWhatIsRememberedOfAnotherIsRead) {
  // Long enough for all of them to be killed if they do not hear from the daemon.
  constexpr std::chrono::seconds kTwoLeases(6);
  StartDaemon();
  daemon_->Signal(SIGTERM);
  ASSERT_EQ(daemon_->Wait(), 0) << daemon_->err();
  const std::string aside = E2eTest::Path("bob");
  std::filesystem::rename(Path("bob"), aside);
  StartDaemon();
  Command alice = Join("alice");
  ASSERT_TRUE(alice.WaitForOut("started")) << alice.err();
  std::filesystem::rename(aside, Path("bob"));
  SlowFile journal(E2eTest::Path("state/tenants/bob/journal.db"));
  if (!journal.is_held()) GTEST_SKIP() << "this file system has no leases";

  KillDaemon();
  ASSERT_TRUE(WaitUntil([&] { return journal.is_waited_for(); })) << daemon_->err();
  std::this_thread::sleep_for(kTwoLeases);
  journal.LetGo();
  ASSERT_TRUE(alice.WaitForErr("reconnected to the rendezvous")) << alice.err();
  EXPECT_FALSE(Contains(alice.err(), "nothing was heard from the rendezvous")) << alice.err();
  Write("end", "");
  EXPECT_EQ(alice.Wait(), 0) << alice.err();
  EXPECT_EQ(alice.out(), "started\nalice") << alice.err();
  EXPECT_EQ(Status(Path("bob")), "");
}

}  // namespace
}  // namespace muster::test

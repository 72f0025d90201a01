// One musterd for several people, as they meet it: `musterd --tokens`, and tokens that change.
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
#include "test/support/run_until.h"

namespace muster::test {
namespace {

using Words = std::vector<std::string>;

// Whoever opens the file from now on is kept waiting, for /proc/sys/fs/lease-break-time (45 s) at
// most. Nobody may have it open.
class SlowFile {
 public:
  explicit SlowFile(const std::string& path) : fd_(open(path.c_str(), O_RDWR | O_CLOEXEC)) {
    // The kernel's word that somebody waits; by default it would end this process.
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
    for (const char* tenant : {"alice", "bob"}) EXPECT_EQ(Token({"new", Path(tenant)}).Wait(), 0);
  }

  static Command Token(Words words) {
    words.insert(words.begin(), {MusterPath(), "token"});
    return Command(std::move(words));
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
  Command Join(const std::string& tenant, const std::string& run_id = "job") {
    Words flags = At(Path(tenant));
    flags.insert(flags.end(), {"--nnodes=1", "--rdzv-id=" + run_id, "--rdzv-conf=is_host=0"});
    return StartAgent(flags, MusterPath() + " kv set owner " + tenant + "; echo started" +
                                 "; while ! test -e " + E2eTest::Path("end") +
                                 "; do sleep 0.02; done; " + MusterPath() + " kv get owner");
  }
  // What `muster status` prints, or why it does not.
  std::string Status(const std::string& token_file) const {
    Words words = At(token_file);
    words.insert(words.begin(), {MusterPath(), "status"});
    Command status(words);
    return status.Wait() == 0 ? status.out() : status.err();
  }

  HeldPort port_;
  std::optional<Command> daemon_;
};

// "My colleague and I both called our run `test`, and his nodes joined mine."
TEST_F(TenantsTest, TwoPeopleShareADaemonAndOneRunIdAndItSurvivesBoth) {
  StartDaemon();
  Command alice = Join("alice");
  Command bob = Join("bob");
  ASSERT_TRUE(alice.WaitForOut("started") && bob.WaitForOut("started")) << alice.err() << bob.err();
  EXPECT_TRUE(Contains(Status(Path("alice")), "job"));
  EXPECT_TRUE(daemon_->WaitForErr("tenant=alice run=job")) << daemon_->err();
  KillDaemon();
  ASSERT_TRUE(daemon_->WaitForErr("2 jobs with 2 nodes remembered in ")) << daemon_->err();
  ASSERT_TRUE(alice.WaitForErr("reconnected to the rendezvous")) << alice.err();
  ASSERT_TRUE(bob.WaitForErr("reconnected to the rendezvous")) << bob.err();
  Write("end", "");
  EXPECT_EQ(alice.Wait(), 0) << alice.err();
  EXPECT_EQ(bob.Wait(), 0) << bob.err();
  EXPECT_TRUE(Contains(alice.out(), "alice"));
  EXPECT_TRUE(Contains(bob.out(), "bob"));
}

// "A token was in a notebook that we published. To change it we had to stop every run."
TEST_F(TenantsTest, ATokenIsChangedUnderARunningJobThatThenComesBackWithTheNewOne) {
  StartDaemon();
  Command alice = Join("alice");
  ASSERT_TRUE(alice.WaitForOut("started")) << alice.err();
  const std::string copy = E2eTest::Path("copy");
  std::filesystem::copy_file(Path("alice"), copy);

  Command rotated = Token({"rotate", "--former-for=3600", Path("alice")});
  EXPECT_EQ(rotated.Wait(), 0) << rotated.err();
  EXPECT_TRUE(Contains(rotated.out(), "has a new token; the former one is taken until 20"));
  EXPECT_TRUE(Contains(Status(Path("alice")), "job"));
  EXPECT_TRUE(Contains(Status(copy), "job"));
  Command last = Token({"rotate", "--former-for=0", Path("alice")});
  EXPECT_EQ(last.Wait(), 0) << last.err();
  EXPECT_TRUE(Contains(Status(Path("alice")), "job"));
  EXPECT_TRUE(Contains(Status(copy), "it was started with another token than the one here"));
  KillDaemon();
  ASSERT_TRUE(alice.WaitForErr("reconnected to the rendezvous")) << alice.err();
  Write("end", "");
  EXPECT_EQ(alice.Wait(), 0) << alice.err();
}

TEST_F(TenantsTest, AMetricsTokenLooksAndDoesNotTouch) {
  StartDaemon();
  Command alice = Join("alice");
  ASSERT_TRUE(alice.WaitForOut("started")) << alice.err();
  Command metrics = Token({"metrics", Path("alice")});
  ASSERT_EQ(metrics.Wait(), 0) << metrics.err();
  const std::string file = Write("metrics", metrics.out(), 0600);
  EXPECT_TRUE(Contains(Status(file), "job"));
  Words get = At(file);
  get.insert(get.begin(), {MusterPath(), "kv"});
  get.insert(get.end(), {"--rdzv-id=job", "get", "owner"});
  Command read(get);
  EXPECT_NE(read.Wait(), 0);
  EXPECT_TRUE(Contains(read.err(), "this client is one of the role metrics and may not call"));
  EXPECT_TRUE(daemon_->WaitForErr("127.0.0.1 is one of the role metrics and may not call"));
  Words join = At(file);
  join.insert(join.end(), {"--nnodes=1", "--rdzv-id=job2", "--rdzv-conf=is_host=0"});
  Command agent = StartAgent(join, "true");
  EXPECT_EQ(agent.Wait(), 3) << agent.err();
  EXPECT_TRUE(Contains(agent.err(), "may not call"));
  Write("end", "");
  EXPECT_EQ(alice.Wait(), 0) << alice.err();
}

// Alice's job ended while nothing was wrong with it: the daemon had died and could not be started
// again, as bob's file had been made readable by all.
TEST_F(TenantsTest, ADaemonThatIsStartedAgainLeavesOutWhoseFileCannotBeUsed) {
  StartDaemon();
  Command alice = Join("alice");
  ASSERT_TRUE(alice.WaitForOut("started")) << alice.err();
  std::filesystem::permissions(Path("bob"), std::filesystem::perms(0644));
  KillDaemon();
  ASSERT_TRUE(alice.WaitForErr("reconnected to the rendezvous")) << daemon_->err();
  EXPECT_TRUE(daemon_->WaitForErr("other users can read or change it")) << daemon_->err();
  Write("end", "");
  EXPECT_EQ(alice.Wait(), 0) << alice.err();
  std::filesystem::permissions(Path("bob"), std::filesystem::perms(0600));
  EXPECT_EQ(Status(Path("bob")), "");
}

// The disk had damaged what was remembered of bob, and alice's job ended: the daemon could not be
// started again.
TEST_F(TenantsTest, ADaemonThatIsStartedAgainServesTheOthersWhereOnesJournalIsDamaged) {
  StartDaemon();
  Command alice = Join("alice");
  ASSERT_TRUE(alice.WaitForOut("started")) << alice.err();
  Write("state/tenants/bob/journal.db", std::string(16384, 'x'), 0600);
  KillDaemon();
  ASSERT_TRUE(alice.WaitForErr("reconnected to the rendezvous")) << daemon_->err();
  Write("end", "");
  EXPECT_EQ(alice.Wait(), 0) << alice.err();
  EXPECT_TRUE(Contains(Status(Path("bob")), "cannot open what it remembers of this tenant"));
  EXPECT_TRUE(daemon_->WaitForErr("tenant 'bob': the journal in ")) << daemon_->err();
}

// "All workers of all users were killed when the daemon was updated. It had to read 500 MB."
TEST_F(TenantsTest, NoWorkerIsLostHoweverLongWhatIsRememberedOfAnotherIsRead) {
  // Long enough that all of them would be killed for want of a word from the daemon.
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

// Bob rotated his token, to which a link in the daemon's directory led, and was locked out: the
// daemon itself could not read where links lead.
TEST_F(TenantsTest, ATokenThatIsALinkIsRotated) {
  const std::string own = E2eTest::Path("of-bob/token");
  ASSERT_EQ(Token({"new", own}).Wait(), 0);
  std::filesystem::remove(Path("bob"));
  std::filesystem::create_symlink(own, Path("bob"));
  StartDaemon();
  EXPECT_EQ(Status(own), "");
  ASSERT_EQ(Token({"rotate", "--former-for=0", own}).Wait(), 0);
  EXPECT_EQ(Status(own), "") << daemon_->err();
}

TEST_F(TenantsTest, MistakesAreOneSentence) {
  for (const auto& [flags, why] : std::vector<std::pair<Words, std::string>>{
           {{"--tokens", ""}, "--tokens names no directory"},
           {{"--tokens=" + E2eTest::Path("none")}, "read tokens in " + E2eTest::Path("none")},
           {{"--tokens=" + E2eTest::Path("none"), "--state-dir=" + E2eTest::Path("state")},
            "read tokens in " + E2eTest::Path("none")},
           {{"--tokens=" + E2eTest::Path("tokens"), "--insecure"},
            "--tokens is for several tenants, and --insecure for one user; drop one of them"},
       }) {
    Words words = flags;
    words.insert(words.begin(), DaemonPath());
    Command daemon(words);
    EXPECT_EQ(daemon.Wait(), 2);
    EXPECT_EQ(Lines(daemon.err()).size(), 1U) << daemon.err();
    EXPECT_TRUE(Contains(daemon.err(), why));
  }
}

}  // namespace
}  // namespace muster::test

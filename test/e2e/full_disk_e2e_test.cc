// A daemon whose state directory is on a full disk: a tmpfs in a mount namespace of its own, which
// disappears with the daemon.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"
#include "test/support/run_until.h"

namespace muster::test {
namespace {

class FullDiskTest : public E2eTest {
 protected:
  void StartDaemonOnOwnDisk() {
    std::filesystem::create_directory(Path("disk"));
    if (!Succeeds({"unshare", "-m", "mount", "-t", "tmpfs", "none", Path("disk")})) {
      GTEST_SKIP() << "SKIPPED, a full disk was not tried: this process may not mount one";
    }
    const std::string script = "mount -t tmpfs -o size=1m,mode=700 none " + Path("disk") +
                               " && exec " + DaemonPath() + " --listen=" + port_.endpoint() +
                               " --state-dir=" + Path("disk");
    daemon_.emplace(std::vector<std::string>{"unshare", "-m", "sh", "-c", script});
    ASSERT_TRUE(daemon_->WaitForErr("listening on")) << daemon_->err();
  }

  // In the daemon's own view of the file system.
  std::string Ballast() const {
    return "/proc/" + std::to_string(daemon_->pid()) + "/root" + Path("disk") + "/ballast";
  }
  void FillDisk() const {
    std::ofstream ballast(Ballast());
    while (ballast << std::string(4096, 'x') << std::flush) continue;
  }

  Command Kv(const std::vector<std::string>& arguments) const {
    std::vector<std::string> argv = {MusterPath(), "kv", "--rdzv-endpoint=" + port_.endpoint(),
                                     "--rdzv-id=job"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return Command(std::move(argv));
  }

  HeldPort port_;
  std::optional<Command> daemon_;
};

// "The disk is full, and all that `muster kv set` says is 'no answer within 10 s'."
TEST_F(FullDiskTest, StoresClientsAreToldAndTheJobGoesOn) {
  ASSERT_NO_FATAL_FAILURE(StartDaemonOnOwnDisk());
  if (IsSkipped()) return;
  Command agent =
      StartAgent({"--nnodes=1", "--rdzv-id=job", "--rdzv-endpoint=" + port_.endpoint(),
                  "--rdzv-conf=is_host=0"},
                 "echo begun; while ! test -e " + Path("end") + "; do sleep 0.02; done");
  ASSERT_TRUE(agent.WaitForOut("begun")) << agent.err();
  EXPECT_EQ(Kv({"set", "kept", "1"}).Wait(), 0);
  FillDisk();

  // The one that finds it full.
  Command first = Kv({"set", "key", std::string(100'000, 'x')});
  EXPECT_EQ(first.Wait(), 3);
  EXPECT_TRUE(Contains(first.err(), "the daemon's disk is full")) << first.err();
  for (const std::vector<std::string>& call :
       {std::vector<std::string>{"set", "key", "1"}, {"delete", "kept"}, {"get", "kept"}}) {
    Command refused = Kv(call);
    EXPECT_EQ(refused.Wait(), 3) << call.front();
    EXPECT_TRUE(Contains(refused.err(), "the daemon's disk is full")) << call.front();
  }

  std::filesystem::remove(Ballast());
  ASSERT_TRUE(daemon_->WaitForErr("the journal can be written again")) << daemon_->err();
  EXPECT_EQ(Kv({"set", "key", "1"}).Wait(), 0);
  Command kept = Kv({"get", "kept"});
  EXPECT_EQ(kept.Wait(), 0) << kept.err();
  EXPECT_TRUE(kept.WaitForOut("1"));
  Write("end", "");
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
  daemon_->Signal(SIGTERM);
  EXPECT_EQ(daemon_->Wait(), 0) << daemon_->err();
}

// "The logs of a night end in the middle of a line, and nothing but a number of bytes said so."
TEST_F(FullDiskTest, RankWhoseLogDoesNotFitIsNamedEverywhere) {
  std::filesystem::create_directory(Path("disk"));
  if (!Succeeds({"unshare", "-m", "mount", "-t", "tmpfs", "none", Path("disk")})) {
    GTEST_SKIP() << "SKIPPED, a full disk was not tried: this process may not mount one";
  }
  const Daemon daemon = StartDaemon();
  const std::string events = Path("events.json");
  Write("worker.sh", "head -c 4000000 /dev/zero | tr '\\0' x; while ! test -e " + Path("end") +
                         "; do sleep 0.02; done");
  const std::string script = "mount -t tmpfs -o size=1m,mode=700 none " + Path("disk") +
                             " && exec " + MusterPath() +
                             " run --nnodes=1 --rdzv-id=job --rdzv-endpoint=" + daemon.endpoint +
                             " --redirects=3 --log-dir=" + Path("disk") + " --event-log=" + events +
                             " --no-python sh " + Path("worker.sh");
  Command agent({"unshare", "-m", "sh", "-c", script}, Environment());
  ASSERT_TRUE(agent.WaitForErr("No space left on device; output is being lost")) << agent.err();
  const auto status = [&] {
    Command command({MusterPath(), "status", "--rdzv-endpoint=" + daemon.endpoint, "job"});
    EXPECT_EQ(command.Wait(), 0) << command.err();
    return command.out();
  };
  EXPECT_TRUE(WaitUntil([&] {
    return status().find(" ago  has lost output: No space left on device (write ") !=
           std::string::npos;
  })) << status();
  Write("end", "");
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
  Command replay({MusterPath(), "replay", events});
  EXPECT_EQ(replay.Wait(), 0) << replay.err();
  EXPECT_TRUE(Contains(replay.out(),
                       "rank 0 has lost output: No space left on device (write " + Path("disk")));
}

}  // namespace
}  // namespace muster::test

// A musterd whose configuration file has a mistake: the daemon that runs goes on with its jobs.
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"
#include "test/support/process_scan.h"

namespace muster::test {
namespace {

class ConfigReloadTest : public E2eTest {
 protected:
  void StartDaemonAndJob() {
    WriteConfig(good_);
    daemon_.emplace(std::vector<std::string>{DaemonPath(), "--config=" + config_});
    ASSERT_TRUE(daemon_->WaitForErr("listening on")) << daemon_->err();
    agent_.emplace(
        StartAgent({"--nnodes=1", "--rdzv-id=job", "--rdzv-endpoint=" + port_.endpoint(),
                    "--rdzv-conf=is_host=0"},
                   "echo begun; while ! test -e " + Path("end") + "; do sleep 0.02; done"));
    ASSERT_TRUE(agent_->WaitForOut("begun")) << agent_->err();
  }

  void WriteConfig(const std::string& text) {
    std::filesystem::remove(config_);
    Write("musterd.toml", text);
  }

  // Replaced by one that knows the job, which ends well.
  void GoesOnAfterReload() {
    daemon_->Signal(SIGHUP);
    ASSERT_TRUE(daemon_->WaitForErr("1 job with 1 node remembered in " + Path("state") + "\n"))
        << daemon_->err();
    ASSERT_TRUE(agent_->WaitForErr("reconnected to the rendezvous")) << agent_->err();
    JobEndsWell();
  }

  void JobEndsWell() {
    Write("end", "");
    EXPECT_EQ(agent_->Wait(), 0) << agent_->err();
    EXPECT_EQ(Lines(agent_->out()).size(), 1u) << agent_->out();
    daemon_->Signal(SIGTERM);
    EXPECT_EQ(daemon_->Wait(), 0) << daemon_->err();
  }

  HeldPort port_;
  const std::string config_ = Path("musterd.toml");
  const std::string listen_ = "listen = \"" + port_.endpoint() + "\"\n";
  const std::string state_ = "state-dir = \"" + Path("state") + "\"\n";
  const std::string good_ = listen_ + state_;
  std::optional<Command> daemon_;
  std::optional<Command> agent_;
};

// "A typo in the file, systemctl reload, and the port took connections only to reset them."
TEST_F(ConfigReloadTest, MistakeInTheFileLeavesTheDaemonAsItIs) {
  StartDaemonAndJob();
  const std::vector<pid_t> before = ChildrenOf(daemon_->pid());
  struct Case {
    std::function<void()> change;
    std::string said;
  };
  const auto text = [this](const std::string& content) {
    return [this, content] { WriteConfig(content); };
  };
  const Case cases[] = {
      {text(good_ + "lisen = \"x\"\n"), "sets 'lisen', which is no setting of a file"},
      {text(good_ + "token-file = \"" + Path("no_such") + "\"\n"), Path("no_such")},
      {text(std::string("\x1b[2J\x00\xff\x7f = \n", 11)), "sets '?[2J"},
      {[this] { mkfifo(config_.c_str(), 0600); },
       "--config=" + config_ + " is no file that can be read"},
      // What the keeper holds stays until its end.
      {text(""), config_ + " has no state-dir, and " + Path("state") + " stays until"},
      {text(listen_ + "state-dir = \"" + Path("other") + "\"\n"),
       config_ + " has state-dir = '" + Path("other") + "', and " + Path("state")},
      {text("listen = \"127.0.0.1:1\"\n" + state_),
       config_ + " has listen = '127.0.0.1:1', and " + port_.endpoint() + " stays until"},
  };
  for (const Case& c : cases) {
    std::filesystem::remove(config_);
    c.change();
    daemon_->Signal(SIGHUP);
    ASSERT_TRUE(daemon_->WaitForErr(c.said)) << daemon_->err();
    EXPECT_EQ(ChildrenOf(daemon_->pid()), before) << c.said;
  }
  EXPECT_EQ(daemon_->err().find("stopping; "), std::string::npos) << daemon_->err();
  WriteConfig(good_ + "log-level = \"debug\"\n");
  GoesOnAfterReload();
}

// "The daemon was killed while I edited its file, and did not come back before I was done."
TEST_F(ConfigReloadTest, DaemonThatDiesWhileTheFileIsEditedIsStartedWithWhatWasRead) {
  StartDaemonAndJob();
  WriteConfig("lis");
  const std::vector<pid_t> children = ChildrenOf(daemon_->pid());
  ASSERT_EQ(children.size(), 1u);
  kill(children.front(), SIGKILL);
  ASSERT_TRUE(daemon_->WaitForErr("sets 'lis', which is no setting of a file")) << daemon_->err();
  EXPECT_TRUE(daemon_->WaitForErr("starting the daemon with what was read last"));
  ASSERT_TRUE(daemon_->WaitForErr("1 job with 1 node remembered in ")) << daemon_->err();
  ASSERT_TRUE(agent_->WaitForErr("reconnected to the rendezvous")) << agent_->err();
  JobEndsWell();
}

}  // namespace
}  // namespace muster::test

#include "test/e2e/ssh_hosts.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "test/support/process_scan.h"
#include "test/support/temp_dir.h"

namespace muster::test {
namespace {

std::string NamespaceOf(pid_t pid) {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/ns/net", ignored);
}

}  // namespace

SshHostsTest::~SshHostsTest() {
  if (runtime_dir_.empty()) return;
  for (const pid_t pid : KeptConnections()) kill(pid, SIGTERM);
  std::error_code ignored;
  std::filesystem::remove_all(runtime_dir_, ignored);
}

void SshHostsTest::MakeHosts(int count, Connections connections) {
  if (geteuid() != 0) GTEST_SKIP() << "network namespaces with an sshd in them take root";
  if (!Succeeds({"unshare", "--net", "ip", "link"}) ||
      !Succeeds({"sh", "-c", "command -v ssh ssh-keygen /usr/sbin/sshd"})) {
    GTEST_SKIP() << "there are no network namespaces here, or no OpenSSH";
  }
  hosts_ = std::make_unique<Command>(std::vector<std::string>{
      "setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "test/e2e/ssh_hosts.sh",
      std::to_string(count), Path("hosts"), mark()});
  ASSERT_TRUE(hosts_->WaitForOut("ready")) << hosts_->err();
  if (connections == Connections::kAreKept) {
    char name[] = "/tmp/muster-test-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    runtime_dir_ = name;
  } else {
    // With a ControlPath of the user's, Muster keeps no connections; without ControlMaster ssh
    // shares none.
    const std::string config = ReadAll(Path("hosts/ssh_config"));
    Write("hosts/ssh_config", "Host *\n  ControlPath /nowhere/%C\n" + config);
  }
}

Command SshHostsTest::StartOnHosts(std::vector<std::string> flags, const std::string& script) {
  std::vector<std::string> argv = Joined({std::filesystem::absolute(MusterPath()), "run"}, flags);
  argv.insert(argv.end(), {"--no-python", "sh", "-c", script});
  return StartWhereTyped(argv);
}

void SshHostsTest::EndJob(Command& job) const {
  job.Signal(SIGTERM);
  EXPECT_EQ(job.Wait(), 128 + SIGTERM) << job.err();
  ExpectNothingLeft();
}

Command SshHostsTest::StartWhereTyped(std::vector<std::string> argv) {
  const std::vector<std::string> where = {"nsenter", "--target", std::to_string(hosts_->pid()),
                                          "--net"};
  argv.insert(argv.begin(), where.begin(), where.end());
  std::vector<std::string> environment = Environment();
  environment.push_back("PATH=" + Path("hosts/bin") + ":/usr/local/bin:/usr/bin:/bin");
  environment.push_back("XDG_RUNTIME_DIR=" + runtime_dir_);
  return Command(argv, environment);
}

pid_t SshHostsTest::PidIn(int host, const std::string& file) const {
  pid_t pid = -1;
  std::ifstream(Path("hosts/node" + std::to_string(host) + "." + file)) >> pid;
  return pid;
}

pid_t SshHostsTest::PidOf(int host) const {
  return host < 0 ? hosts_->pid() : PidIn(host, "pid");
}

std::vector<pid_t> SshHostsTest::Processes(int host, const std::string& part) const {
  std::vector<pid_t> found;
  for (const pid_t pid : ProcessesWith(mark())) {
    std::string command = ReadAll("/proc/" + std::to_string(pid) + "/cmdline");
    for (char& c : command) {
      if (c == '\0') c = ' ';
    }
    if (command.find(part) == std::string::npos) continue;
    if (NamespaceOf(pid) == NamespaceOf(PidOf(host))) found.push_back(pid);
  }
  return found;
}

std::vector<pid_t> SshHostsTest::Sessions(int host) const {
  return ChildrenOf(PidIn(host, "sshd"));
}

std::vector<pid_t> SshHostsTest::KeptConnections() {
  std::vector<pid_t> found;
  std::error_code ignored;
  for (const auto& socket :
       std::filesystem::directory_iterator(runtime_dir_ + "/muster-ssh", ignored)) {
    Command check = StartWhereTyped({"ssh", "-S", socket.path(), "-O", "check", "any"});
    pid_t pid = -1;
    if (check.Wait() == 0 &&
        std::sscanf(check.err().c_str(), "Master running (pid=%d)", &pid) == 1) {
      found.push_back(pid);
    }
  }
  return found;
}

void SshHostsTest::StopSshd(int host) const {
  const pid_t sshd = PidIn(host, "sshd");
  ASSERT_GT(sshd, 1);
  kill(sshd, SIGKILL);
}

bool SshHostsTest::OnHost(int host, const std::string& command) const {
  return Succeeds(
      {"nsenter", "--target", std::to_string(PidOf(host)), "--net", "sh", "-c", command});
}

void SshHostsTest::SetCable(int host, bool is_there) const {
  // Its other end, on the bridge of the machine where commands are typed.
  EXPECT_TRUE(OnHost(-1, "ip link set to" + std::to_string(host) + (is_there ? " up" : " down")));
}

void SshHostsTest::PowerOff(int host) const {
  for (const pid_t session : Sessions(host)) kill(session, SIGKILL);
  for (const pid_t pid : Processes(host, "")) kill(pid, SIGKILL);
}

}  // namespace muster::test

// Hosts with an sshd each, simulated with network namespaces (ssh_hosts.sh), and `muster run
// --hosts` on a machine that reaches them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"
#include "test/support/command.h"

namespace muster::test {

// A test with hosts; skipped where they are impossible, as it needs root and OpenSSH.
class SshHostsTest : public E2eTest {
 protected:
  // Whether ssh may keep connections longer than the commands that opened them.
  enum class Connections { kEndWithTheirCommand, kAreKept };

  ~SshHostsTest() override;

  // Creates hosts node0 to node<count - 1>. Everything started on them has the test's mark.
  void MakeHosts(int count, Connections connections = Connections::kEndWithTheirCommand);

  // `muster run` with these flags and a shell script as each worker's program.
  Command StartOnHosts(std::vector<std::string> flags, const std::string& script);

  // Stops a job, of which nothing may be left on any host.
  void EndJob(Command& job) const;

  // A program on the machine where commands are typed.
  Command StartWhereTyped(std::vector<std::string> argv);

  // The test's processes on a host (-1: where the command was typed) whose command line contains
  // `part`.
  std::vector<pid_t> Processes(int host, const std::string& part) const;
  // sshd's processes for connections to the host.
  std::vector<pid_t> Sessions(int host) const;

  // $XDG_RUNTIME_DIR where commands are typed, if connections are kept.
  const std::string& runtime_dir() const { return runtime_dir_; }
  // The ssh processes that keep connections where commands are typed.
  std::vector<pid_t> KeptConnections();

  // From now on new connections to the host fail.
  void StopSshd(int host) const;

  // Runs a shell command on the host as root; true if it exits with 0.
  bool OnHost(int host, const std::string& command) const;

  // Connects or disconnects the host's network.
  void SetCable(int host, bool is_there) const;

  // Kills all of the test's processes there, except for the listening sshd.
  void PowerOff(int host) const;

 private:
  // A pid that ssh_hosts.sh recorded for a host.
  pid_t PidIn(int host, const std::string& file) const;
  pid_t PidOf(int host) const;

  std::unique_ptr<Command> hosts_;
  // The directory of kept connections: its path is short enough for sockets.
  std::string runtime_dir_;
};

}  // namespace muster::test

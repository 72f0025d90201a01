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

// A test that has hosts, or is skipped where there can be none: it takes root and OpenSSH.
class SshHostsTest : public E2eTest {
 protected:
  // Whether ssh may keep connections behind the commands that made them.
  enum class Connections { kEndWithTheirCommand, kAreKept };

  ~SshHostsTest() override;

  // Makes hosts node0 to node<count - 1>. Whatever is started on them has the test's mark.
  void MakeHosts(int count, Connections connections = Connections::kEndWithTheirCommand);

  // `muster run` with these flags and a shell script as each worker's program.
  Command StartOnHosts(std::vector<std::string> flags, const std::string& script);

  // A program on the machine where commands are typed.
  Command StartWhereTyped(std::vector<std::string> argv);

  // The processes of the test on a host (-1: where the command was typed) whose command line has
  // `part` in it.
  std::vector<pid_t> Processes(int host, const std::string& part) const;
  // Those of sshd for connections to the host.
  std::vector<pid_t> Sessions(int host) const;

  // $XDG_RUNTIME_DIR where commands are typed, if connections are kept.
  const std::string& runtime_dir() const { return runtime_dir_; }
  // Of each connection that is kept where commands are typed, the ssh that has it.
  std::vector<pid_t> KeptConnections();

  // From now on nobody can connect to the host.
  void StopSshd(int host) const;

  // A shell command on the host, by root; whether it exits with 0.
  bool OnHost(int host, const std::string& command) const;

  // Whether packets leave the host and reach it.
  void SetCable(int host, bool is_there) const;

  // Kills all that runs there for the test, but for the sshd that listens.
  void PowerOff(int host) const;

 private:
  // What ssh_hosts.sh has left of a host: the number of a process.
  pid_t PidIn(int host, const std::string& file) const;
  pid_t PidOf(int host) const;

  std::unique_ptr<Command> hosts_;
  // Where connections are kept: its path is short enough for a socket's.
  std::string runtime_dir_;
};

}  // namespace muster::test

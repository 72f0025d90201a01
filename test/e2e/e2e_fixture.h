// The fixture of end-to-end tests: agents and a daemon as real processes on this machine.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/command.h"

namespace muster::test {

// A port of 127.0.0.1 that the kernel assigns to no other program while this object exists. A
// server that sets SO_REUSEADDR, as musterd and agents do, can still listen on it.
class HeldPort {
 public:
  HeldPort();
  ~HeldPort();
  HeldPort(const HeldPort&) = delete;
  HeldPort& operator=(const HeldPort&) = delete;

  // Starts to listen on the port, so that clients can connect, but never sends anything.
  void Listen();

  std::string number() const { return std::to_string(port_); }
  // "127.0.0.1:PORT".
  std::string endpoint() const { return "127.0.0.1:" + number(); }

 private:
  int fd_ = -1;
  int port_ = 0;
};

// A musterd on a free port of 127.0.0.1.
struct Daemon {
  Command process;
  std::string endpoint;
};

// Each test has a unique mark in the environment of its agents and their workers. No process with
// that mark may be left at the end of the test.
class E2eTest : public testing::Test {
 protected:
  E2eTest();
  ~E2eTest() override;
  void TearDown() override;

  // `muster run` with these arguments.
  Command StartMuster(std::vector<std::string> arguments,
                      std::vector<std::string> environment = {});
  // `muster run` with these flags and a shell script as each worker's program.
  Command StartAgent(std::vector<std::string> flags, const std::string& script);
  // Starts musterd. Returns once agents can connect.
  Daemon StartDaemon();
  // Runs a program and returns whether it exits with 0; for tests that must know whether they can
  // run.
  static bool Succeeds(std::vector<std::string> argv);

  static std::string MusterPath();
  static std::string DaemonPath();

  // The environment of every agent of the test: the mark, and directories for logs and for `muster
  // ps`.
  std::vector<std::string> Environment() const;

  // Shell commands that wait until such a file is there.
  std::string Until(const std::string& file) const {
    return "while ! test -e " + Path(file) + "; do sleep 0.02; done";
  }

  // No process has the mark any more.
  void ExpectNothingLeft() const;

  // The mark: NAME=VALUE.
  const std::string& mark() const { return mark_; }
  // A path in a directory that is removed after the test.
  std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  // Writes a file there and returns its path.
  std::string Write(const std::string& name, const std::string& text, int mode = 0644) const;

 private:
  const std::string mark_;
  std::string directory_;
};

// This machine's name, as agents report it.
std::string HostName();

// The failure message contains the whole text.
testing::AssertionResult Contains(const std::string& text, const std::string& part);

std::vector<std::string> Lines(const std::string& text);

// The value of a field in the report, such as "3 (pid: 17)" for "exitcode"; empty if it is missing.
std::string ReportField(const std::string& report, const std::string& name);

}  // namespace muster::test

// What end-to-end tests share: agents and a daemon as real processes on this machine.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/command.h"

namespace muster::test {

// A port of 127.0.0.1 that the kernel gives to nobody else for as long as this object lives, while
// a server that sets SO_REUSEADDR, as musterd and agents do, can still listen on it.
class HeldPort {
 public:
  HeldPort();
  ~HeldPort();
  HeldPort(const HeldPort&) = delete;
  HeldPort& operator=(const HeldPort&) = delete;

  // From now on somebody listens there who never says a word.
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

// Every agent of a test carries a mark of the test's own in its environment, and so do its workers:
// at the end of each test no process with that mark may be left.
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
  // Returns once agents can connect.
  Daemon StartDaemon();
  // Runs a program to its end, for tests that need to know whether they can run at all.
  static bool Succeeds(std::vector<std::string> argv);

  static std::string MusterPath();
  static std::string DaemonPath();

  // What every agent of the test gets: the mark, and places for logs and for `muster ps`.
  std::vector<std::string> Environment() const;

  // The mark: NAME=VALUE.
  const std::string& mark() const { return mark_; }
  // A path in a directory that ends with the test.
  std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  // Writes a file there and returns its path.
  std::string Write(const std::string& name, const std::string& text, int mode = 0644) const;

 private:
  const std::string mark_;
  std::string directory_;
};

// With the whole text in the message when a part is not there.
testing::AssertionResult Contains(const std::string& text, const std::string& part);

std::vector<std::string> Lines(const std::string& text);

// The value of a field of the report: "3 (pid: 17)" for "exitcode"; empty when it has none.
std::string ReportField(const std::string& report, const std::string& name);

}  // namespace muster::test

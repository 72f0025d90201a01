#include "test/e2e/e2e_fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "test/support/process_scan.h"

namespace muster::test {
namespace {

std::string MakeDirectory() {
  const char* base = std::getenv("TEST_TMPDIR");
  std::string path = std::string(base != nullptr ? base : "/tmp") + "/e2e_XXXXXX";
  if (mkdtemp(path.data()) == nullptr) std::abort();
  return path;
}

void Append(std::vector<std::string>& to, const std::vector<std::string>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace

HeldPort::HeldPort() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const int on = 1;
  setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(fd_, generic, size) != 0 || getsockname(fd_, generic, &size) != 0) std::abort();
  port_ = ntohs(address.sin_port);
}

HeldPort::~HeldPort() {
  close(fd_);
}

void HeldPort::Listen() {
  if (listen(fd_, 16) != 0) std::abort();
}

E2eTest::E2eTest() : mark_(UniqueMark()), directory_(MakeDirectory()) {
  // A user of its own, whose token is created when it is first needed.
  setenv("XDG_CONFIG_HOME", Path("config").c_str(), 1);
}

E2eTest::~E2eTest() {
  std::filesystem::remove_all(directory_);
}

void E2eTest::TearDown() {
  ExpectNothingLeft();
}

void E2eTest::ExpectNothingLeft() const {
  EXPECT_TRUE(WaitForProcesses(mark_, 0)) << ProcessesWith(mark_).size() << " processes are left";
}

Command E2eTest::StartMuster(std::vector<std::string> arguments,
                             std::vector<std::string> environment) {
  std::vector<std::string> argv = {MusterPath(), "run"};
  Append(argv, arguments);
  Append(environment, Environment());
  return Command(std::move(argv), environment);
}

std::vector<std::string> E2eTest::Environment() const {
  // Logs without a flag go to TMPDIR.
  return {mark_, "TMPDIR=" + directory_, "MUSTER_RUNS_DIR=" + Path("runs")};
}

Command E2eTest::StartAgent(std::vector<std::string> flags, const std::string& script) {
  Append(flags, {"--no-python", "sh", "-c", script});
  return StartMuster(std::move(flags));
}

Daemon E2eTest::StartDaemon() {
  Command process({DaemonPath(), "--listen=127.0.0.1:0", "--ready-fd=1"});
  EXPECT_TRUE(process.WaitForOut("\n")) << process.err();
  std::string endpoint = "127.0.0.1:" + Lines(process.out()).at(0);
  return {std::move(process), std::move(endpoint)};
}

bool E2eTest::Succeeds(std::vector<std::string> argv) {
  return Command(std::move(argv)).Wait() == 0;
}

std::string E2eTest::MusterPath() {
  return std::filesystem::absolute("launcher/muster");
}

std::string E2eTest::DaemonPath() {
  return std::filesystem::absolute("rendezvous/musterd");
}

std::string E2eTest::Write(const std::string& name, const std::string& text, int mode) const {
  const std::string path = Path(name);
  std::ofstream(path) << text;
  chmod(path.c_str(), static_cast<mode_t>(mode));
  return path;
}

std::string HostName() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

testing::AssertionResult Contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "no \"" << part << "\" in:\n" << text;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string ReportField(const std::string& report, const std::string& name) {
  for (const std::string& line : Lines(report)) {
    // "  exitcode  : 3 (pid: 17)".
    const std::size_t colon = line.find(" : ");
    if (colon == std::string::npos || !line.starts_with("  " + name)) continue;
    return line.substr(colon + 3);
  }
  return "";
}

}  // namespace muster::test

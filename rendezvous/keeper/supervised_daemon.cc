#include "rendezvous/keeper/supervised_daemon.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/failure.h"

namespace muster::rendezvous {
namespace {

// Messages, each a packet of its own. From the keeper: the greeting, which is the key and the state
// directory's path, and kLeave. From the daemon: kRead, and kReady with the port in decimal.
constexpr char kProtocol[] = "1";
constexpr std::string_view kLeave = "leave";
constexpr std::string_view kRead = "read";
constexpr std::string_view kReady = "ready ";

void Send(int fd, std::string_view message) {
  // If the other end does not read, it is dead or dying.
  TEMP_FAILURE_RETRY(send(fd, message.data(), message.size(), MSG_NOSIGNAL));
}

// Empty if the other end is closed, or with MSG_DONTWAIT if there is no message; errno is EAGAIN
// then.
std::string Receive(int fd, int flags) {
  std::array<char, sizeof(ProbeKey) + PATH_MAX> buffer;
  const ssize_t size = TEMP_FAILURE_RETRY(recv(fd, buffer.data(), buffer.size(), flags));
  if (size == 0) errno = 0;
  return std::string(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
}

void CloseOnExec(int fd) {
  fcntl(fd, F_SETFD, FD_CLOEXEC);
}

}  // namespace

absl::StatusOr<std::optional<SupervisedDaemon>> SupervisedDaemon::FromEnvironment() {
  const char* const variable = getenv(kKeeperVariable);
  if (variable == nullptr) return std::nullopt;
  const std::string value = variable;
  unsetenv(kKeeperVariable);
  const absl::Status unusable = absl::FailedPreconditionError(
      absl::StrCat(kKeeperVariable, "='", value, "' is not of a keeper that this musterd knows"));

  const std::vector<std::string> words = absl::StrSplit(value, ' ', absl::SkipEmpty());
  if (words.size() < 3 || words[0] != kProtocol) return unusable;
  std::vector<int> fds;
  for (auto word = words.begin() + 1; word != words.end(); ++word) {
    int fd = -1;
    if (!absl::SimpleAtoi(*word, &fd) || fd < 0) return unusable;
    fds.push_back(fd);
  }
  for (const int fd : fds) CloseOnExec(fd);
  const std::string greeting = Receive(fds[0], 0);
  KeptThings things{.sockets = {fds.begin() + 2, fds.end()}, .lock = fds[1]};
  if (greeting.size() <= things.key.size()) return unusable;
  std::copy_n(greeting.begin(), things.key.size(), things.key.begin());
  things.state_path = greeting.substr(things.key.size());
  return SupervisedDaemon(fds[0], std::move(things));
}

void SupervisedDaemon::AwaitLeave() const {
  Send(control_, kRead);
  // Otherwise the keeper is dead, and this process will be killed in a moment.
  if (Receive(control_, 0) != kLeave) _exit(1);
}

void SupervisedDaemon::SayReady(std::uint16_t port) const {
  Send(control_, absl::StrCat(std::string(kReady), port));
}

absl::StatusOr<int> DaemonControl::Open(const KeptThings& things) {
  Close();
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return base::SystemFailure(absl::StatusCode::kUnavailable, "make a socket pair");
  }
  fd_ = ends[0];
  Send(fd_, std::string(things.key.begin(), things.key.end()) + things.state_path);
  return ends[1];
}

void DaemonControl::Close() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

std::string DaemonControl::Variable(int daemons_end, const KeptThings& things) {
  return absl::StrCat(kKeeperVariable, "=", kProtocol, " ", daemons_end, " ", things.lock, " ",
                      absl::StrJoin(things.sockets, " "));
}

DaemonWord DaemonControl::Read() {
  if (fd_ < 0) return {};
  const std::string message = Receive(fd_, MSG_DONTWAIT);
  if (message.empty()) {
    if (errno != EAGAIN) Close();
    return {};
  }
  if (message == kRead) return {DaemonWord::Kind::kRead};
  int port = 0;
  if (message.starts_with(kReady) && absl::SimpleAtoi(message.substr(kReady.size()), &port)) {
    return {DaemonWord::Kind::kReady, static_cast<std::uint16_t>(port)};
  }
  // Skips a message that only later versions know.
  return Read();
}

void DaemonControl::GiveLeave() const {
  if (fd_ >= 0) Send(fd_, kLeave);
}

}  // namespace muster::rendezvous

#include "trainer/app/rank_processes.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "base/failure.h"
#include "worker/env_names.h"

extern char** environ;

namespace muster::trainer {
namespace {

absl::Status Failure(const char* attempt, int error) {
  return base::SystemFailure(absl::StatusCode::kUnavailable, attempt, "", error);
}

// A port of the loopback interface that nobody listens on.
absl::StatusOr<int> FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const bool found =
      fd >= 0 && bind(fd, generic, length) == 0 && getsockname(fd, generic, &length) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  if (!found) return Failure("find a free port", error);
  return ntohs(address.sin_port);
}

// This process's environment with `changes` instead of what it says of them.
std::vector<std::string> ChangedEnvironment(
    const std::vector<std::pair<std::string, std::string>>& changes) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string entry = *variable;
    bool changed = false;
    for (const auto& [name, value] : changes) changed |= entry.rfind(name + "=", 0) == 0;
    if (!changed) variables.push_back(entry);
  }
  for (const auto& [name, value] : changes) variables.push_back(absl::StrCat(name, "=", value));
  return variables;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

absl::StatusOr<pid_t> StartRank(std::vector<std::string> arguments, int rank, int ranks, int port) {
  namespace env = worker::env;
  const std::string place = absl::StrCat(rank);
  const std::string size = absl::StrCat(ranks);
  std::vector<std::string> variables = ChangedEnvironment({{env::kRank, place},
                                                           {env::kWorldSize, size},
                                                           {env::kLocalRank, place},
                                                           {env::kLocalWorldSize, size},
                                                           {env::kMasterAddr, "127.0.0.1"},
                                                           {env::kMasterPort, absl::StrCat(port)},
                                                           {env::kUseAgentStore, ""},
                                                           {env::kErrorFile, ""}});
  arguments.insert(arguments.begin(), "muster-train");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, "/proc/self/exe", &actions, nullptr,
                                Pointers(arguments).data(), Pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return Failure("start a rank", error);
  return pid;
}

// Its exit code, 128 + the signal if one ended it.
int WaitFor(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

absl::Status RunRankProcesses(const std::vector<std::string>& arguments, int ranks) {
  const absl::StatusOr<int> port = FreePort();
  if (!port.ok()) return port.status();
  std::vector<pid_t> pids;
  absl::Status status;
  for (int rank = 0; rank < ranks && status.ok(); ++rank) {
    const absl::StatusOr<pid_t> pid = StartRank(arguments, rank, ranks, *port);
    if (pid.ok()) pids.push_back(*pid);
    status = pid.status();
  }
  for (std::size_t rank = 0; rank < pids.size(); ++rank) {
    const int code = WaitFor(pids[rank]);
    if (code != 0 && status.ok()) {
      status = absl::UnavailableError(absl::StrCat("rank ", rank, " ended with exit code ", code));
    }
  }
  return status;
}

}  // namespace muster::trainer

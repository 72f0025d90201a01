#include "trainer/worker/launcher_link.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "base/failure.h"
#include "base/json.h"
#include "worker/env_names.h"

namespace muster::trainer {
namespace {

// Reads whole numbers of one environment, and keeps the first error.
class NumberReader {
 public:
  explicit NumberReader(const Lookup& lookup) : lookup_(lookup) {}

  // The value of `name`, which must be in [low, high]; `fallback` if it is not set.
  int Read(const char* name, int fallback, int low, int high) {
    const std::optional<std::string> text = lookup_(name);
    if (!text || text->empty()) return fallback;
    int value = 0;
    if (!absl::SimpleAtoi(*text, &value)) {
      Complain(absl::StrCat(name, "=", *text, " is not a whole number"));
    } else if (value < low || value > high) {
      Complain(absl::StrCat(name, "=", *text, " is not between ", low, " and ", high));
    }
    return value;
  }

  const absl::Status& status() const { return status_; }

 private:
  void Complain(const std::string& sentence) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(sentence);
  }

  const Lookup& lookup_;
  absl::Status status_;
};

}  // namespace

std::optional<std::string> LookupInProcess(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

absl::StatusOr<Environment> ReadEnvironment(const Lookup& lookup) {
  constexpr int kMany = std::numeric_limits<int>::max();
  const auto text = [&lookup](const char* name) { return lookup(name).value_or(""); };

  // A rank without a world size would train alone and overwrite the real rank 0's files.
  if (!text(worker::env::kRank).empty() && text(worker::env::kWorldSize).empty()) {
    return absl::InvalidArgumentError("RANK is set but WORLD_SIZE is not");
  }

  Environment env;
  NumberReader numbers(lookup);
  env.world_size = numbers.Read(worker::env::kWorldSize, 1, 1, kMany);
  env.rank = numbers.Read(worker::env::kRank, -1, 0, kMany);
  env.local_rank = numbers.Read(worker::env::kLocalRank, 0, 0, kMany);
  env.has_local_rank = !text(worker::env::kLocalRank).empty();
  env.local_world_size = numbers.Read(worker::env::kLocalWorldSize, 1, 1, kMany);
  env.restart_count = numbers.Read(worker::env::kRestartCount, 0, 0, kMany);
  env.round = numbers.Read(worker::env::kRound, 0, 0, kMany);
  env.master_port = static_cast<std::uint16_t>(numbers.Read(worker::env::kMasterPort, 0, 1, 65535));
  if (!numbers.status().ok()) return numbers.status();

  env.master_addr = text(worker::env::kMasterAddr);
  // torchrun writes Python's True, and its own workers compare with exactly that.
  env.agent_store = text(worker::env::kUseAgentStore) == "True";
  env.run_id = text(worker::env::kRunId);
  env.beat_socket = text(worker::env::kBeatSocket);
  env.flight_log = text(worker::env::kFlightLog);
  // Not an error: nothing depends on it, and data at a wrong offset is ignored.
  if (!absl::SimpleAtoi(text(worker::env::kFlightOffset), &env.flight_offset)) {
    env.flight_log.clear();
  }
  env.gloo_interface = text(worker::env::kGlooSocketIfname);

  if (env.rank < 0) {
    if (env.world_size > 1) {
      return absl::InvalidArgumentError("WORLD_SIZE is set but RANK is not");
    }
    env.rank = 0;
  }
  if (env.rank >= env.world_size) {
    return absl::InvalidArgumentError(
        absl::StrCat("RANK=", env.rank, " is not below WORLD_SIZE=", env.world_size));
  }
  if (env.world_size > 1 && (env.master_addr.empty() || env.master_port == 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("WORLD_SIZE=", env.world_size, " needs MASTER_ADDR and MASTER_PORT"));
  }
  return env;
}

BeatSender::BeatSender(std::string socket, int rank) : socket_(std::move(socket)), rank_(rank) {
  if (socket_.empty() || socket_.size() >= sizeof(sockaddr_un::sun_path)) return;
  fd_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

BeatSender::~BeatSender() {
  if (fd_ >= 0) ::close(fd_);
}

void BeatSender::Send(std::int64_t step, const StepDetails& details) {
  if (fd_ < 0) return;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  socket_.copy(address.sun_path, socket_.size());
  std::string text = absl::StrCat("beat ", rank_, " ", step);
  if (details.loss) absl::StrAppendFormat(&text, " loss=%.6g", *details.loss);
  if (details.samples_per_second) {
    absl::StrAppendFormat(&text, " samples_per_second=%.6g", *details.samples_per_second);
  }
  for (const StepDetails::Part& part : details.parts) {
    absl::StrAppendFormat(&text, " %s=%.6f", part.name, part.seconds);
  }
  // It does not matter to the training whether a launcher listens.
  [[maybe_unused]] const ssize_t sent =
      ::sendto(fd_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

std::string ErrorFileJson(std::string_view message, std::string_view stack,
                          std::int64_t unix_seconds) {
  base::Json extra = {{"timestamp", absl::StrCat(unix_seconds)}};
  if (!stack.empty()) extra["py_callstack"] = std::string(stack) + "\n" + std::string(message);
  const base::Json message_member = {{"message", message}, {"extraInfo", std::move(extra)}};
  return base::JsonText({{"message", message_member}}) + "\n";
}

absl::Status WriteErrorFile(const std::string& path, std::string_view message,
                            std::string_view stack) {
  if (path.empty()) return absl::OkStatus();
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << ErrorFileJson(message, stack,
                        std::chrono::duration_cast<std::chrono::seconds>(since_epoch).count());
  file.close();
  if (file.good()) return absl::OkStatus();
  return base::SystemFailure(absl::StatusCode::kUnavailable, "write error file", path);
}

namespace {

// Senders of signals, one bit each.
enum Sender : unsigned { kTerminal = 1, kParent = 2, kOther = 4 };

std::atomic<bool> g_remembers{false};
std::atomic<unsigned> g_heard{0};  // senders
std::atomic<int> g_signal{0};
static_assert(std::atomic<bool>::is_always_lock_free &&
                  std::atomic<unsigned>::is_always_lock_free &&
                  std::atomic<int>::is_always_lock_free,
              "they are used in a signal handler");

Sender SenderOf(const siginfo_t& info) {
  if (info.si_code > 0) return kTerminal;  // sent by the kernel itself
  return info.si_pid == getppid() ? kParent : kOther;
}

void OnStop(int signal, siginfo_t* info, void*) {
  const Sender sender = SenderOf(*info);
  // By _exit and not by the signal, which does not end the first process of a container.
  if (!g_remembers || (g_heard.fetch_or(sender) & sender) != 0) _exit(StopExitCode(signal));
  int none = 0;
  g_signal.compare_exchange_strong(none, signal);
}

}  // namespace

void EndOnStopSignals() {
  for (const int signal : kStopSignals) {
    struct sigaction action = {};
    const bool ignored = sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
    if (signal == SIGHUP && ignored) continue;
    action = {};
    action.sa_sigaction = OnStop;
    // Interrupted calls are restarted: the loop checks after its step.
    action.sa_flags = SA_RESTART | SA_SIGINFO;
    sigaction(signal, &action, nullptr);
  }
}

void RememberStopSignals() {
  g_remembers = true;
}

int StopSignal() {
  return g_signal;
}

}  // namespace muster::trainer

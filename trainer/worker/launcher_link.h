// The environment variables set by a launcher, as documented by torchrun, read once and checked.
#pragma once

#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::trainer {

// One worker's place in the job. Without a launcher the world has size 1.
struct Environment {
  int rank = 0;
  int world_size = 1;
  // This worker's index on its node, and the number of workers on the node.
  int local_rank = 0;
  int local_world_size = 1;
  // Whether local_rank was set; otherwise the world's ranks may be on one host or on many.
  bool has_local_rank = false;
  // Where the ranks meet. Always set when world_size is above 1.
  std::string master_addr;
  std::uint16_t master_port = 0;
  // Whether the launcher serves the store at master_addr:master_port; otherwise rank 0 does.
  bool agent_store = false;
  // How often the job was restarted, and its run ID, which is empty without a launcher. Muster also
  // counts rounds: a new one begins without a restart when a node is lost or joins.
  int restart_count = 0;
  int round = 0;
  std::string run_id;
  // The socket on which the launcher receives beats (BeatSender); empty: none.
  std::string beat_socket;
  // Where the launcher reads this rank's last operations: a file and the offset in it (see
  // worker/flight_log.h); empty: nowhere.
  std::string flight_log;
  std::int64_t flight_offset = 0;
  // The network interfaces for Gloo, comma-separated (GLOO_SOCKET_IFNAME); empty: the one that
  // leads to master_addr.
  std::string gloo_interface;

  // Whether workers of this job have run before these.
  bool restarted() const { return restart_count > 0 || round > 0; }

  bool operator==(const Environment&) const = default;
};

// Looks up a variable: its value, or nullopt if it is not set.
using Lookup = std::function<std::optional<std::string>(const char* name)>;

// Looks `name` up in this process's environment.
std::optional<std::string> LookupInProcess(const char* name);

// Reads the environment through `lookup`. An empty variable counts as not set. kInvalidArgument and
// one sentence that names the variable when a value is not a number, is out of range, or lacks
// another variable that it requires.
absl::StatusOr<Environment> ReadEnvironment(const Lookup& lookup);

// Reports this rank's progress to the launcher (MUSTER_BEAT_SOCKET), so that the launcher can
// distinguish a hung rank from a busy one, and details of its steps, so that it can name the rank
// that slows the others down.

// Details of a step, as far as known.
struct StepDetails {
  std::optional<double> loss;
  std::optional<double> samples_per_second;  // of this rank
  // A part of the step. In parts whose names begin with "wait" the rank has waited for others.
  struct Part {
    const char* name = "";  // [a-z][a-z0-9_]*, at most 15 bytes
    double seconds = 0;
  };
  std::vector<Part> parts;  // at most eight
};

// Sends "beat RANK STEP" as a datagram, followed by the step's details (the format is in
// worker/hang/hang_watch.h). Never blocks: if the socket is full or gone the beat is dropped, and
// the next one makes up for it. Not thread-safe.
class BeatSender {
 public:
  // `socket` is the path given by the launcher. If it is empty or not a socket, nothing is ever
  // sent.
  BeatSender(std::string socket, int rank);
  ~BeatSender();
  BeatSender(const BeatSender&) = delete;
  BeatSender& operator=(const BeatSender&) = delete;

  // Whether anything is ever sent; if not, the details of steps need not be collected.
  bool sends() const { return fd_ >= 0; }

  // Reports that this rank has completed `step`, 0 or more. One system call, about 2 us; with
  // details about 4 us.
  void Send(std::int64_t step, const StepDetails& details = {});

 private:
  const std::string socket_;
  const int rank_;
  // -1: send nothing.
  int fd_ = -1;
};

// The file in which a failed worker reports its error to its launcher (TORCHELASTIC_ERROR_FILE).

// The JSON read by torchrun's agent: {"message": {"message": ..., "extraInfo": {"py_callstack":
// ..., "timestamp": "<Unix seconds>"}}} (torch/distributed/elastic/multiprocessing/errors/
// error_handler.py). When there is a py_callstack, torchrun shows it instead of the message,
// because Python's ends with the message; so this one does too. It is left out when `stack` is
// empty. Non-ASCII characters are kept if the text is valid UTF-8.
std::string ErrorFileJson(std::string_view message, std::string_view stack,
                          std::int64_t unix_seconds);

// Writes the file at `path`, with the current time, replacing an existing one. Does nothing if
// `path` is empty, which in torchrun means no file. kUnavailable if writing fails.
absl::Status WriteErrorFile(const std::string& path, std::string_view message,
                            std::string_view stack);

// Turns SIGTERM, SIGINT (Ctrl-C) and SIGHUP (the terminal is closed) into a request that the
// training loop checks.

inline constexpr int kStopSignals[] = {SIGTERM, SIGINT, SIGHUP};

// From now on each of these signals ends the process at once, with StopExitCode(): before the
// training there is nothing to save, and LibTorch keeps waiting for other ranks after a signal. A
// SIGHUP that was ignored when the process started (nohup) stays ignored; the others take effect
// even then, as a script ignores SIGINT for commands that it starts with `&`. Call it once.
void EndOnStopSignals();

// From now on the first of these signals is only remembered, so that the training can finish its
// step and save a checkpoint. Call it after EndOnStopSignals().
//
// One request may arrive twice: on Ctrl-C the terminal sends SIGINT to its whole foreground, and a
// launcher there forwards it. So the terminal, the parent process and all other processes may each
// send one signal. A second one from the same source ends the process at once, and nothing is
// saved.
void RememberStopSignals();

// The first signal received; 0 if none. Thread-safe.
int StopSignal();

// The exit code of a process ended by `signal`, as shells report it: 143 for SIGTERM, 130 for
// SIGINT, 129 for SIGHUP.
constexpr int StopExitCode(int signal) {
  return 128 + signal;
}

}  // namespace muster::trainer

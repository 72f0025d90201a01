// The main process of a musterd with a journal.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rendezvous/journal/state_directory.h"

namespace muster::rendezvous {

// When the keeper of a daemon does what: pure decisions, without a clock or a process.

// How a process ended: with an exit code, or by a signal (if `signal` is not 0).
struct DaemonEnd {
  int exit_code = 0;
  int signal = 0;
};

// The keeper of a daemon with a journal keeps a daemon running, and answers probes while there is
// none. The daemon is
//
//   starting    it reads its journal and prepares to serve, and decides nothing. Then it asks to
//               proceed (OnReadToGo); once allowed, probes are no longer answered, and each node
//               has its whole lease from then on;
//   serving     it was allowed to proceed;
//   dead        it is restarted when its pause is over. There is no pause after the first death;
//               pauses grow until it serves for ten seconds between deaths;
//   replaced    it was told to shut down, and the program now on disk comes next;
//   ending      it was told to shut down, and the keeper with it.
//
// A daemon that exits cleanly was told to, so its keeper exits, too. The keeper also exits if the
// daemon's exit code says, at the very first start, that it cannot work; later it is retried, as
// its disk may be full or missing for a while.
//
// Exit code kUnusable means that someone has to fix something the daemon depends on. If none has
// ever served for ten seconds, its keeper exits with it: the user who has just started it will see
// that. Otherwise jobs may be waiting for the fix: it is retried, after pauses of up to a minute.
//
// One of several daemons may find, after being told to shut down, that another one leads. That
// counts as a clean exit, too.
//
// Probes are answered while it is dead, and while it starts for longer than a moment; a connection
// made within that moment waits for the daemon.
class SupervisorPolicy {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = TimePoint::duration;

  // Start the daemon; `new_program`: from the program now on disk, instead of the last one started;
  // `after_death`: not requested by the user.
  struct Start {
    bool new_program = false;
    bool after_death = false;
  };
  // Stop answering probes, and tell the daemon to proceed.
  struct LetGo {};
  // Agents can connect for the first time: tell the parent process.
  struct Announce {
    int port = 0;
  };
  // Send the daemon this signal.
  struct Signal {
    int number = 0;
  };
  // Start answering probes, or stop.
  struct Answer {
    bool open = false;
  };
  struct Log {
    bool is_warning = false;
    std::string sentence;
  };
  // Exit with this code.
  struct End {
    int exit_code = 0;
  };
  using Action = std::variant<Start, LetGo, Announce, Signal, Answer, Log, End>;
  using Actions = std::vector<Action>;

  static constexpr Duration kFirstPause = std::chrono::milliseconds(100);
  static constexpr Duration kLongestPause = std::chrono::seconds(5);
  static constexpr Duration kLongestPauseOfUnusable = std::chrono::minutes(1);
  static constexpr Duration kServesWell = std::chrono::seconds(10);
  static constexpr Duration kMoment = std::chrono::milliseconds(100);

  // Exit codes of the daemon.
  static constexpr int kLeadsNoLonger = 6;
  static constexpr int kUnusable = 7;

  Actions OnBegin(TimePoint now) { return {StartAgain(now, {})}; }
  // The daemon has read its journal, and is ready to serve.
  Actions OnReadToGo(TimePoint now);
  Actions OnReady(int port);
  // The daemon has died, and was waited for; or it could not be started (`end` then has the exit
  // code for that).
  Actions OnDied(DaemonEnd end, TimePoint now);
  // The keeper was told to exit (SIGTERM, SIGINT).
  Actions OnToldToEnd(int signal);
  // The keeper was told to replace the daemon (SIGHUP). `configuration`: an error in the new
  // configuration; the daemon then continues with the old one.
  Actions OnToldToReplace(const absl::Status& configuration, TimePoint now);
  // Call it when `deadline` comes; earlier it does nothing.
  Actions OnTime(TimePoint now);

  std::optional<TimePoint> deadline() const;

 private:
  enum class State { kStarting, kServing, kDead, kReplaced, kEnding };

  Start StartAgain(TimePoint now, Start how);

  State state_ = State::kDead;
  TimePoint since_{};  // start of the state
  bool was_ready_ = false;
  bool has_served_well_ = false;
  bool answers_ = false;
  // Between the last death and the next start; grows with each death.
  Duration pause_{};
  Duration next_pause_{};
};

struct SupervisorOptions {
  // The complete command line of the daemon; used again after each death, even if the configuration
  // file has changed since.
  std::vector<std::string> argv;
  // Builds such a command line from the current configuration; an error is one sentence.
  std::function<absl::StatusOr<std::vector<std::string>>()> read_again;
  // Whether a daemon can start with the last configuration read: its tokens may be missing.
  std::function<absl::Status()> check;
  // Listening sockets, owned by the keeper from now on. None: the daemon opens its own, and no
  // process answers probes while it is dead, as another daemon may lead then.
  std::vector<int> sockets;
  // Set if there is a state directory.
  std::optional<StateDirectory> state;
  // Otherwise a file shared by the daemons of this keeper.
  int shared_file = -1;
  // As in ServerConfig: the keeper writes to it, once.
  int ready_fd = -1;
};

// Keeps a daemon running: starts it as a child from this process' own program, restarts it when it
// dies, and meanwhile holds what must always have a holder: the port, the state directory, and the
// key for answering agents that probe (SupervisorPolicy says when). The daemon never outlives the
// keeper (PR_SET_PDEATHSIG). Returns the keeper's exit code.
//
//   SIGTERM, SIGINT   stops the daemon, then the keeper
//   SIGHUP            reads and checks the configuration. The daemon shuts down and restarts
//                     with it, from the program now at the path; a bad configuration changes
//                     nothing. If sent because the terminal is gone: as SIGTERM
//
// One process, one thread, no loop but poll(): call it before there are other threads. It logs to
// spdlog's default logger, which must not block (daemon_log.h).
int RunKeeper(SupervisorOptions options);

}  // namespace muster::rendezvous

// What the keeper of a daemon does when: pure decisions, without a clock or a process.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"

namespace muster::rendezvous {

// How a process ended: by itself with a code, or by a signal (if `signal` is not 0).
struct DaemonEnd {
  int exit_code = 0;
  int signal = 0;
};

// The keeper of a daemon that remembers its jobs makes sure that a daemon is running, and answers
// knocks while none is. The daemon is
//
//   starting    it reads what it remembers and makes itself ready, and decides nothing. Then it
//               asks to proceed (OnReadToGo); once it may, no more knocks are answered, and each
//               node has its whole lease from then on;
//   serving     it was allowed to proceed;
//   dead        it is started again when its pause is over. There is no pause after the first
//               death; pauses grow as long as it does not serve for ten seconds between deaths;
//   replaced    it was told to end in good order, and the program that is on disk now comes next;
//   ending      it was told to end, and so does the keeper after it.
//
// A daemon that ends by itself in good order was told to do so, and its keeper ends, too. The
// keeper also ends if the daemon's exit code says, at the very first start, that it cannot work;
// later it is tried again, as its disk may be full or missing for a while.
//
// A daemon that ends with kUnusable has found that what it depends on has to be changed by
// somebody. If none has ever served for ten seconds, its keeper ends with it, as whoever has just
// started it is there to hear that. Else jobs may be waiting for what is mended meanwhile: it is
// tried again, after pauses of up to a minute.
//
// A daemon that takes turns with others and was told to end may find first that another leads. That
// is in good order, too.
//
// Knocks are answered while it is dead, and while it starts for longer than a moment; a connection
// that comes within that moment waits and is the daemon's.
class KeeperPolicy {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = TimePoint::duration;

  // Start the daemon; `new_program`: from the program that is on disk now, instead of the one
  // started last; `after_death`: nobody has asked for it.
  struct Start {
    bool new_program = false;
    bool after_death = false;
  };
  // Answer no knocks from now on, and tell the daemon to proceed.
  struct LetGo {};
  // Agents can connect for the first time: tell whoever started us.
  struct Announce {
    int port = 0;
  };
  // Send the daemon this signal.
  struct Signal {
    int number = 0;
  };
  // Begin to answer knocks, or stop.
  struct Answer {
    bool open = false;
  };
  struct Log {
    bool is_warning = false;
    std::string sentence;
  };
  // End with this code.
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

  // Exit codes of the daemon's.
  static constexpr int kLeadsNoLonger = 6;
  static constexpr int kUnusable = 7;

  Actions OnBegin(TimePoint now);
  // The daemon has read what it remembers, and is ready to serve.
  Actions OnReadToGo(TimePoint now);
  Actions OnReady(int port);
  // The daemon has died, and was waited for; or it could not be started (`end` then has the exit
  // code it would have ended with).
  Actions OnDied(DaemonEnd end, TimePoint now);
  // The keeper was told to end (SIGTERM, SIGINT).
  Actions OnToldToEnd(int signal);
  // The keeper was told to replace the daemon (SIGHUP). `configuration`: what is wrong with the one
  // that is there now; then the daemon goes on with the one before.
  Actions OnToldToReplace(const absl::Status& configuration, TimePoint now);
  // To be called when `deadline` comes; earlier it does nothing.
  Actions OnTime(TimePoint now);

  std::optional<TimePoint> deadline() const;

 private:
  enum class State { kStarting, kServing, kDead, kReplaced, kEnding };

  Actions StartAgain(TimePoint now, Start how);

  State state_ = State::kDead;
  TimePoint since_{};  // of the state
  bool was_ready_ = false;
  bool has_served_well_ = false;
  bool answers_ = false;
  // Between the last death and the next start; grows at each death.
  Duration pause_{};
  Duration next_pause_{};
};

}  // namespace muster::rendezvous

// Who answers for a rendezvous that remembered nothing, once its process is dead.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "rendezvous/wire/knock.h"

namespace muster::rendezvous {

// A small process beside the one that serves a rendezvous from its own memory. It holds the port
// and the key, and sleeps until that process has died in whatever way. All that was known of the
// job is then gone, and nobody will ever give a node's place away. It tells agents that knock so,
// and their workers get their full grace time. It leaves a second after as many agents as attended
// have been told, after ten seconds in any case, and at once when another process on this machine
// asks for the port (as ListenAt does).
//
// It has a session of its own, keeps nothing of its parent but the port, and blocks every signal
// that can be blocked.
class LastWord {
 public:
  // Longer than it takes an agent to knock, and to knock again.
  static constexpr std::chrono::seconds kStay{10};
  // For agents whose answer was lost.
  static constexpr std::chrono::seconds kLinger{1};

  // Starts it. `sockets` listen. May be called while other threads are running.
  static absl::StatusOr<LastWord> Start(std::span<const int> sockets, const KnockKey& key);

  LastWord(LastWord&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), attending_(std::exchange(other.attending_, nullptr)) {}
  LastWord& operator=(LastWord&&) = delete;
  // Ends it without an answer to anybody, and waits until it has let go of the port.
  ~LastWord();

  // How many agents attend over the network now: that many will knock. Only writes to memory.
  void SetAttending(std::uint32_t count) { *attending_ = count; }

  pid_t pid() const { return pid_; }

 private:
  LastWord(pid_t pid, std::atomic<std::uint32_t>* attending) : pid_(pid), attending_(attending) {}

  pid_t pid_;
  std::atomic<std::uint32_t>* attending_;  // shared with the process
};

}  // namespace muster::rendezvous

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
// and the key, and sleeps until that process has died, however it did. With it, all that was known
// of the job is gone, and nobody will ever give a node's place away: so it tells those who knock,
// and their workers get the time that they are due to end in. It leaves a second after as many as
// attended have been told, after ten seconds in any case, and at once when another process of this
// machine asks for the port (ListenAt does).
//
// It has a session of its own, nothing of its parent's but the port, and ignores every signal that
// can be ignored.
class LastWord {
 public:
  // Beyond the time after which an agent knocks, and knocks again.
  static constexpr std::chrono::seconds kStay{10};
  // For those whose answer was lost.
  static constexpr std::chrono::seconds kLinger{1};

  // Starts it. `sockets` listen. May be called beside other threads.
  static absl::StatusOr<LastWord> Start(std::span<const int> sockets, const KnockKey& key);

  LastWord(LastWord&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), attending_(std::exchange(other.attending_, nullptr)) {}
  LastWord& operator=(LastWord&&) = delete;
  // Ends it without a word, and waits until it has let go of the port.
  ~LastWord();

  // How many agents attend over the network now: so many will knock. A store to memory.
  void SetAttending(std::uint32_t count) { *attending_ = count; }

  pid_t pid() const { return pid_; }

 private:
  LastWord(pid_t pid, std::atomic<std::uint32_t>* attending) : pid_(pid), attending_(attending) {}

  pid_t pid_;
  std::atomic<std::uint32_t>* attending_;  // which the process sees, too
};

}  // namespace muster::rendezvous

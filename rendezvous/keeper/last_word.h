// Who answers for a rendezvous that remembered nothing, once its process is dead.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "rendezvous/wire/knock.h"

namespace muster::rendezvous {

// A small process beside the one that serves a rendezvous from its own memory. It holds the port
// and the key, and sleeps until that process has died, however it did. With it, all that was known
// of the job is gone, and nobody will ever give a node's place away: so it tells those who knock,
// for ten seconds, and their workers get the time that they are due to end in. It leaves at once
// when another process of this machine asks for the port (ListenAt does).
//
// It has a session of its own, nothing of its parent's but the port, and ignores every signal that
// can be ignored.
class LastWord {
 public:
  // Beyond the time after which an agent knocks, and knocks again.
  static constexpr std::chrono::seconds kStay{10};

  // Starts it. `sockets` listen. May be called beside other threads.
  static absl::StatusOr<LastWord> Start(std::span<const int> sockets, const KnockKey& key);

  LastWord(LastWord&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  LastWord& operator=(LastWord&&) = delete;
  // Ends it without a word, and waits until it has let go of the port.
  ~LastWord();

  pid_t pid() const { return pid_; }

 private:
  explicit LastWord(pid_t pid) : pid_(pid) {}

  pid_t pid_;
};

}  // namespace muster::rendezvous

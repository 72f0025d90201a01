// What passes between a keeper and the daemon it has started: both ends of it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rendezvous/wire/knock.h"

namespace muster::rendezvous {

// What the daemon is given: descriptors that it inherits, and what the keeper tells it first. A
// keeper of this version may start a daemon of the next, so the format changes only with kProtocol,
// in kept_daemon.cc.
struct KeptThings {
  // Listening sockets; none where the jobs are in an etcd.
  std::vector<int> sockets;
  // The state directory, as StateDirectory::Adopt takes it; or a file that is shared with daemons
  // before and after this one.
  int lock = -1;
  std::string state_path;
  KnockKey key{};
};

// The environment variable that tells a daemon that it has a keeper, and which descriptors it was
// given.
inline constexpr char kKeeperVariable[] = "MUSTERD_KEEPER";

// The daemon's end. Its calls block; the keeper always answers, and when it dies the kernel kills
// the daemon.
class KeptDaemon {
 public:
  // nullopt when no keeper has started this process. FailedPrecondition when the keeper is one that
  // this version cannot work with. To be called once, at the start: the variable is gone
  // afterwards.
  static absl::StatusOr<std::optional<KeptDaemon>> FromEnvironment();

  const KeptThings& things() const { return things_; }

  // The daemon has read all that it remembers, of every tenant, and can listen at once. Returns
  // once the keeper no longer answers knocks: only then may leases begin, and anything be decided.
  // What comes between this and the first word to an agent counts as silence, and may cost workers.
  void AwaitLeave() const;
  // Agents can connect, to this port.
  void SayReady(std::uint16_t port) const;

 private:
  KeptDaemon(int control, KeptThings things) : control_(control), things_(std::move(things)) {}

  int control_;
  KeptThings things_;
};

// What the keeper hears from the daemon.
struct DaemonWord {
  enum class Kind {
    kRead,     // as KeptDaemon::AwaitLeave
    kReady,    // with `port`
    kNothing,  // there is nothing to read now, or ever
  };
  Kind kind = Kind::kNothing;
  std::uint16_t port = 0;
};

// The keeper's end, with one daemon or none.
class DaemonControl {
 public:
  DaemonControl() = default;
  ~DaemonControl() { Close(); }
  DaemonControl(const DaemonControl&) = delete;
  DaemonControl& operator=(const DaemonControl&) = delete;

  // For the next daemon: returns the descriptor that it is to inherit, which the caller closes once
  // the daemon is started. The greeting has already been written.
  absl::StatusOr<int> Open(const KeptThings& things);
  void Close();
  // The value of kKeeperVariable for that daemon.
  static std::string Variable(int daemons_end, const KeptThings& things);

  // For poll(); -1: nothing will come.
  int fd() const { return fd_; }
  // Does not block.
  DaemonWord Read();
  void GiveLeave() const;

 private:
  int fd_ = -1;
};

}  // namespace muster::rendezvous

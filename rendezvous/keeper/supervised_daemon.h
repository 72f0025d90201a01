// The channel between a keeper and the daemon it has started: both ends.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rendezvous/wire/liveness_probe.h"

namespace muster::rendezvous {

// What the daemon receives: inherited descriptors, and the keeper's greeting. A keeper of this
// version may start a daemon of the next, so the format changes only with kProtocol, in
// supervised_daemon.cc.
struct KeptThings {
  // Listening sockets; none if the jobs are in etcd.
  std::vector<int> sockets;
  // The state directory, for StateDirectory::Adopt; or a file shared with the daemons before and
  // after this one.
  int lock = -1;
  std::string state_path;
  ProbeKey key{};
};

// The environment variable that tells a daemon that it has a keeper, and which descriptors it
// inherits.
inline constexpr char kKeeperVariable[] = "MUSTERD_KEEPER";

// The daemon's end. Calls block; the keeper always answers, and if it dies the kernel kills the
// daemon.
class SupervisedDaemon {
 public:
  // nullopt if this process has no keeper. FailedPrecondition if the keeper's protocol is not this
  // version's. Call once, at the start: removes the variable.
  static absl::StatusOr<std::optional<SupervisedDaemon>> FromEnvironment();

  const KeptThings& things() const { return things_; }

  // The daemon has read its journal, of every tenant, and can listen at once. Returns once the
  // keeper no longer answers probes: leases and decisions may only begin after that. Time between
  // this and the first message to an agent counts as silence, and may cost workers.
  void AwaitLeave() const;
  // Agents can connect, to this port.
  void SayReady(std::uint16_t port) const;

 private:
  SupervisedDaemon(int control, KeptThings things)
      : control_(control), things_(std::move(things)) {}

  int control_;
  KeptThings things_;
};

// The daemon's messages to the keeper.
struct DaemonWord {
  enum class Kind {
    kRead,     // from SupervisedDaemon::AwaitLeave
    kReady,    // with `port`
    kNothing,  // there is nothing to read now, or ever
  };
  Kind kind = Kind::kNothing;
  std::uint16_t port = 0;
};

// The keeper's end, with at most one daemon.
class DaemonControl {
 public:
  DaemonControl() = default;
  ~DaemonControl() { Close(); }
  DaemonControl(const DaemonControl&) = delete;
  DaemonControl& operator=(const DaemonControl&) = delete;

  // For the next daemon: returns the descriptor that it is to inherit; the caller closes it once
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

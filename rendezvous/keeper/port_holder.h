// Answers for a rendezvous without a journal once its process is dead.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "absl/status/statusor.h"

#include "rendezvous/wire/liveness_probe.h"

namespace muster::rendezvous {

// A small process next to one that serves a rendezvous from memory. It holds the port and the key,
// and sleeps until that process has died in any way. The job's state is then lost, and no node's
// place will ever be given away. It tells probing agents so, and their workers get their full grace
// time. It exits one second after as many agents as attended have been answered, at the latest
// after ten seconds, and at once when another process on this machine asks for the port (as
// ListenAt does).
//
// It has its own session, keeps nothing of its parent but the port, and blocks every signal that
// can be blocked.
class PortHolder {
 public:
  // Long enough for an agent to probe twice.
  static constexpr std::chrono::seconds kStay{10};
  // For agents whose answer was lost.
  static constexpr std::chrono::seconds kLinger{1};

  // Starts the process. `sockets` listen. May be called while other threads are running.
  static absl::StatusOr<PortHolder> Start(std::span<const int> sockets, const ProbeKey& key);

  PortHolder(PortHolder&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), attending_(std::exchange(other.attending_, nullptr)) {}
  PortHolder& operator=(PortHolder&&) = delete;
  // Ends the process without answering any agent, and waits until it has released the port.
  ~PortHolder();

  // The number of agents that attend over the network, and so will probe. Only writes to memory.
  void SetAttending(std::uint32_t count) { *attending_ = count; }

  pid_t pid() const { return pid_; }

 private:
  PortHolder(pid_t pid, std::atomic<std::uint32_t>* attending) : pid_(pid), attending_(attending) {}

  pid_t pid_;
  std::atomic<std::uint32_t>* attending_;  // shared with the process
};

// Closes inherited descriptors in a forked process that outlives its parent.

// Closes every file descriptor except `kept`, which are in ascending order, so that the other ends
// of the parent's pipes and connections see them close. Allocates nothing and takes no lock. Before
// Linux 5.9, and where a filter forbids close_range, it uses the list in /proc/self/fd.
void CloseAllBut(std::span<const int> kept);

// For tests: the variant without close_range.
void CloseListedBut(std::span<const int> kept);

// Answers probes at a port whose daemon is dead. While open, it accepts every connection to the
// sockets, answers each complete probe with its word and closes all other connections: gRPC's, a
// store's, a death notice. While closed, it leaves connections in the sockets' queue for the next
// process that accepts.
//
// Needs no loop: fd() is for its owner's poll(). Allocates nothing and takes no lock, so that it
// works in a process forked while other threads were running. A silent caller is kept until its
// slot is needed, or until Close.
class ProbeResponder {
 public:
  static constexpr std::size_t kMaxSockets = 16;

  // Closed at first. `sockets` listen, and must remain open as long as this lives; they become
  // non-blocking. Sockets beyond kMaxSockets are ignored.
  ProbeResponder(std::span<const int> sockets, const ProbeKey& key, ProbeWord word);
  // Closes the responder, but not the sockets.
  ~ProbeResponder();
  ProbeResponder(const ProbeResponder&) = delete;
  ProbeResponder& operator=(const ProbeResponder&) = delete;

  void Open();
  // From now on no probe is answered: callers still waiting find their connection closed.
  void Close();
  bool is_open() const { return epoll_ >= 0; }

  // Readable when Handle has something to do; -1 while closed.
  int fd() const { return epoll_; }
  // Does all pending work without blocking. True: a process on this machine asks for the port,
  // which only matters if the word is kGone; it waits for its connection to end, which this keeps
  // open.
  bool Handle();

  // Probes answered since the start.
  std::uint64_t answered() const { return answered_; }

 private:
  // One connection. The oldest has the lowest number.
  struct Caller {
    int fd = -1;
    std::uint64_t number = 0;
    std::size_t size = 0;
    std::array<char, kProbeSize + 1> text;
  };

  void Accept(int socket);
  Caller& FreePlace();
  // Reads what is there, and answers; true: the caller may still send more.
  bool Hear(Caller& caller);
  void Drop(Caller& caller);

  const ProbeKey key_;
  const ProbeWord word_;
  std::array<int, kMaxSockets> sockets_;
  std::size_t socket_count_ = 0;

  int epoll_ = -1;
  std::array<Caller, 128> callers_;
  std::uint64_t next_number_ = 1;
  std::uint64_t answered_ = 0;
  bool room_is_asked_for_ = false;
};

}  // namespace muster::rendezvous

// Answers knocks at a port whose daemon is dead.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "rendezvous/wire/knock.h"

namespace muster::rendezvous {

// While open, it accepts every connection to the sockets, answers each complete knock with its word
// and closes all other connections: gRPC's, a store's, a death notice. While closed, it leaves
// connections in the sockets' queue for whoever accepts next.
//
// Needs no loop: fd() is for its owner's poll(). Allocates nothing and takes no lock, so that it
// works in a process forked while other threads were running. A silent caller is kept until there
// is no room for another, or until the desk closes.
class KnockDesk {
 public:
  static constexpr std::size_t kMaxSockets = 16;

  // Begins closed. `sockets` listen, and must remain open as long as the desk lives; from now on
  // they do not block. Sockets beyond kMaxSockets are ignored.
  KnockDesk(std::span<const int> sockets, const KnockKey& key, KnockWord word);
  // Closes the desk, but not the sockets.
  ~KnockDesk();
  KnockDesk(const KnockDesk&) = delete;
  KnockDesk& operator=(const KnockDesk&) = delete;

  void Open();
  // After this no answer is given: callers not yet answered find their connection closed.
  void Close();
  bool is_open() const { return epoll_ >= 0; }

  // Readable when Handle has something to do; -1 while the desk is closed.
  int fd() const { return epoll_; }
  // Does what there is to do, without blocking. True: a process on this machine asks for the port,
  // which only counts where the word is kGone; it waits for its connection to end, which the desk
  // keeps open.
  bool Handle();

  // Knocks that were answered since the beginning.
  std::uint64_t answered() const { return answered_; }

 private:
  // One connection. The oldest is the one with the lowest number.
  struct Caller {
    int fd = -1;
    std::uint64_t number = 0;
    std::size_t size = 0;
    std::array<char, kKnockSize + 1> text;
  };

  void Accept(int socket);
  Caller& FreePlace();
  // Reads what there is, and answers; true: the caller may still say more.
  bool Hear(Caller& caller);
  void Drop(Caller& caller);

  const KnockKey key_;
  const KnockWord word_;
  std::array<int, kMaxSockets> sockets_;
  std::size_t socket_count_ = 0;

  int epoll_ = -1;
  std::array<Caller, 128> callers_;
  std::uint64_t next_number_ = 1;
  std::uint64_t answered_ = 0;
  bool room_is_asked_for_ = false;
};

}  // namespace muster::rendezvous

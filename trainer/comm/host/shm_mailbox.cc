#include "trainer/comm/host/shm_mailbox.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "trainer/comm/host/shm_barrier.h"

namespace muster::trainer {
namespace {

using MailClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A waiter sleeps after this many polls.
constexpr int kMailboxLooks = 100;
// How often a waiter checks its peers, and the most waiting time counted per check: beyond that,
// this process was stopped itself.
constexpr milliseconds kPeersEvery(50);
constexpr milliseconds kMostCounted(2 * kPeersEvery);

// Precedes each message in a ring.
struct Head {
  std::uint64_t bytes = 0;
  std::int64_t tag = 0;
};

// A message that this member sends.
struct Outgoing {
  ShmMailbox::Ticket ticket;
  Head head;
  const std::byte* data;
  std::size_t done = 0;  // of head and data together
};

// A receive that waits for its message.
struct Awaited {
  ShmMailbox::Ticket ticket;
  int tag;
  std::byte* data;
  std::size_t bytes;
};

// A message that arrived before it was awaited.
struct Early {
  int tag;
  std::vector<std::byte> message;
};

}  // namespace

// All zero at first.
struct alignas(64) ShmMailbox::Cell {
  std::atomic<std::uint32_t> bell;  // rung by other members after anything this member may be
                                    // waiting for
  std::atomic<std::uint32_t> sleeps;
  std::atomic<std::uint32_t> left;
  std::atomic<std::int32_t> pid;  // 0: not joined yet
  std::atomic<std::uint64_t> start_time;
};

// Both count bytes since the start; the bytes themselves follow.
struct ShmMailbox::Ring {
  alignas(64) std::atomic<std::uint64_t> written;
  alignas(64) std::atomic<std::uint64_t> read;

  std::byte* data() { return reinterpret_cast<std::byte*>(this) + sizeof(Ring); }
};

struct ShmMailbox::Peer {
  std::deque<Outgoing> outgoing;
  // The message being read: its head, then its bytes, to the waiting memory or to `early`.
  Head head;
  std::size_t done = 0;
  std::byte* into = nullptr;
  std::optional<Awaited> place;
  std::vector<std::byte> aside;
  std::deque<Awaited> awaited;
  std::deque<Early> early;
};

std::size_t ShmMailbox::SegmentBytes(int members, std::size_t ring_bytes) {
  const auto n = static_cast<std::size_t>(members);
  return n * sizeof(Cell) + n * n * (sizeof(Ring) + ring_bytes);
}

ShmMailbox::ShmMailbox(ShmSegment segment, Options options)
    : options_(std::move(options)),
      segment_(std::move(segment)),
      ring_bytes_((segment_.size() - options_.ranks.size() * sizeof(Cell)) /
                      (options_.ranks.size() * options_.ranks.size()) -
                  sizeof(Ring)) {
  const int members = static_cast<int>(options_.ranks.size());
  // Any other size would lead to accesses beyond the segment.
  if (segment_.size() != SegmentBytes(members, ring_bytes_) || ring_bytes_ % 64 != 0) std::abort();
  for (int member = 0; member < members; ++member) {
    peers_.push_back(member == options_.member ? nullptr : std::make_unique<Peer>());
  }
  const ProcessIdentity me = ThisProcess();
  CellOf(options_.member).start_time.store(me.start_time);
  CellOf(options_.member).pid.store(me.pid);
}

ShmMailbox::~ShmMailbox() {
  CellOf(options_.member).left.store(1);
  for (std::size_t member = 0; member < peers_.size(); ++member) {
    if (peers_[member]) Announce(static_cast<int>(member));
  }
}

ShmMailbox::Cell& ShmMailbox::CellOf(int member) const {
  return reinterpret_cast<Cell*>(segment_.data())[member];
}

ShmMailbox::Ring& ShmMailbox::RingFrom(int from, int to) const {
  const std::size_t members = options_.ranks.size();
  const std::size_t index = static_cast<std::size_t>(from) * members + static_cast<std::size_t>(to);
  return *reinterpret_cast<Ring*>(segment_.data() + members * sizeof(Cell) +
                                  index * (sizeof(Ring) + ring_bytes_));
}

// Either we see here that it sleeps, or it sees the bell, and with it everything before, before it
// sleeps: both are sequentially consistent.
void ShmMailbox::Announce(int member) {
  Cell& its = CellOf(member);
  its.bell.fetch_add(1);
  if (its.sleeps.load() != 0) WakeAll(its.bell);
}

ShmMailbox::Ticket ShmMailbox::Send(int to, int tag, const std::byte* data, std::size_t bytes) {
  const Ticket ticket = next_++;
  open_.insert(ticket);
  Peer& peer = *peers_[static_cast<std::size_t>(to)];
  peer.outgoing.push_back({.ticket = ticket, .head = {bytes, tag}, .data = data});
  Push(to, peer);
  return ticket;
}

ShmMailbox::Ticket ShmMailbox::Receive(int from, int tag, std::byte* data, std::size_t bytes) {
  const Ticket ticket = next_++;
  open_.insert(ticket);
  Peer& peer = *peers_[static_cast<std::size_t>(from)];
  peer.awaited.push_back({ticket, tag, data, bytes});
  const auto early = std::find_if(peer.early.begin(), peer.early.end(),
                                  [tag](const Early& one) { return one.tag == tag; });
  if (early != peer.early.end()) {
    std::vector<std::byte> message = std::move(early->message);
    peer.early.erase(early);
    Deliver(from, peer, tag, std::move(message));
  }
  return ticket;
}

// Passes a complete message to the receive that waits for it, or buffers it.
void ShmMailbox::Deliver(int from, Peer& peer, int tag, std::vector<std::byte> message) {
  const auto place = std::find_if(peer.awaited.begin(), peer.awaited.end(),
                                  [tag](const Awaited& one) { return one.tag == tag; });
  if (place == peer.awaited.end()) {
    peer.early.push_back({tag, std::move(message)});
    return;
  }
  if (place->bytes != message.size()) {
    failed_ = absl::InvalidArgumentError(absl::StrCat(
        "shared memory: rank ", options_.ranks[static_cast<std::size_t>(from)], " has sent ",
        message.size(), " bytes with tag ", tag, ", and ", place->bytes, " were awaited"));
    return;
  }
  std::copy(message.begin(), message.end(), place->data);
  open_.erase(place->ticket);
  peer.awaited.erase(place);
}

bool ShmMailbox::Progress() {
  bool any = false;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (!peers_[i]) continue;
    any |= Push(static_cast<int>(i), *peers_[i]);
    any |= Pull(static_cast<int>(i), *peers_[i]);
  }
  return any;
}

bool ShmMailbox::Push(int to, Peer& peer) {
  if (peer.outgoing.empty()) return false;
  Ring& ring = RingFrom(options_.member, to);
  std::uint64_t written = ring.written.load(std::memory_order_relaxed);
  const std::uint64_t before = written;
  std::size_t room = ring_bytes_ - (written - ring.read.load(std::memory_order_acquire));
  const auto put = [&](const std::byte* from, std::size_t bytes) {
    while (bytes > 0) {
      const std::size_t at = written % ring_bytes_;
      const std::size_t length = std::min(bytes, ring_bytes_ - at);
      std::memcpy(ring.data() + at, from, length);
      written += length;
      room -= length;
      from += length;
      bytes -= length;
    }
  };
  while (!peer.outgoing.empty() && room > 0) {
    Outgoing& next = peer.outgoing.front();
    if (next.done < sizeof(Head)) {
      if (room < sizeof(Head)) break;
      put(reinterpret_cast<const std::byte*>(&next.head), sizeof(Head));
      next.done = sizeof(Head);
    }
    const std::size_t sent = next.done - sizeof(Head);
    const std::size_t length = std::min(room, static_cast<std::size_t>(next.head.bytes) - sent);
    put(next.data + sent, length);
    next.done += length;
    if (next.done < sizeof(Head) + next.head.bytes) break;
    open_.erase(next.ticket);
    peer.outgoing.pop_front();
  }
  if (written == before) return false;
  ring.written.store(written);
  Announce(to);
  return true;
}

bool ShmMailbox::Pull(int from, Peer& peer) {
  Ring& ring = RingFrom(from, options_.member);
  std::uint64_t read = ring.read.load(std::memory_order_relaxed);
  const std::uint64_t before = read;
  std::size_t there = ring.written.load(std::memory_order_acquire) - read;
  const auto take = [&](std::byte* into, std::size_t bytes) {
    while (bytes > 0) {
      const std::size_t at = read % ring_bytes_;
      const std::size_t length = std::min(bytes, ring_bytes_ - at);
      std::memcpy(into, ring.data() + at, length);
      read += length;
      there -= length;
      into += length;
      bytes -= length;
    }
  };
  while (failed_.ok()) {
    if (peer.done < sizeof(Head)) {
      if (there < sizeof(Head)) break;
      take(reinterpret_cast<std::byte*>(&peer.head), sizeof(Head));
      peer.done = sizeof(Head);
      const auto place = std::find_if(peer.awaited.begin(), peer.awaited.end(),
                                      [&](const Awaited& one) { return one.tag == peer.head.tag; });
      // A message that is not awaited, or has another size, is buffered, and Deliver() reports the
      // error.
      if (place != peer.awaited.end() && place->bytes == peer.head.bytes) {
        peer.place = *place;
        peer.into = place->data;
        peer.awaited.erase(place);
      } else {
        peer.aside.resize(peer.head.bytes);
        peer.into = peer.aside.data();
      }
    }
    const std::size_t got = peer.done - sizeof(Head);
    const std::size_t length = std::min(there, static_cast<std::size_t>(peer.head.bytes) - got);
    take(peer.into + got, length);
    peer.done += length;
    if (peer.done < sizeof(Head) + peer.head.bytes) break;
    peer.done = 0;
    if (peer.place) {
      open_.erase(peer.place->ticket);
      peer.place.reset();
    } else {
      Deliver(from, peer, static_cast<int>(peer.head.tag), std::exchange(peer.aside, {}));
    }
  }
  if (read == before) return false;
  ring.read.store(read);
  Announce(from);
  return true;
}

bool ShmMailbox::Done(Ticket ticket) {
  if (open_.contains(ticket)) Progress();
  return !open_.contains(ticket);
}

absl::Status ShmMailbox::Wait(Ticket ticket) {
  for (int i = 0; i < kMailboxLooks; ++i) {
    if (!failed_.ok()) return failed_;
    if (Done(ticket)) return absl::OkStatus();
  }
  Cell& mine = CellOf(options_.member);
  milliseconds waited(0);
  MailClock::time_point looked = MailClock::now();
  mine.sleeps.store(1);
  for (;;) {
    const std::uint32_t seen = mine.bell.load();
    const bool moved = Progress();
    if (!failed_.ok() || !open_.contains(ticket)) break;
    if (moved) {
      waited = milliseconds(0);
      looked = MailClock::now();
      continue;
    }
    SleepOn(mine.bell, seen, kPeersEvery);
    const auto since = std::chrono::floor<milliseconds>(MailClock::now() - looked);
    if (since < kPeersEvery) continue;
    looked += since;
    waited += std::min(since, kMostCounted);
    // Everything a member wrote before it ended is there.
    if (Progress()) continue;
    if (failed_ = LookAtPeers(); !failed_.ok()) break;
    if (waited < options_.timeout) continue;
    for (std::size_t i = 0; i < peers_.size() && failed_.ok(); ++i) {
      if (!peers_[i]) continue;
      const auto waits = [ticket](const auto& one) { return one.ticket == ticket; };
      const Peer& peer = *peers_[i];
      if ((peer.place && waits(*peer.place)) ||
          std::any_of(peer.awaited.begin(), peer.awaited.end(), waits) ||
          std::any_of(peer.outgoing.begin(), peer.outgoing.end(), waits)) {
        failed_ = Fail(static_cast<int>(i), absl::StrCat("did not come within ",
                                                         options_.timeout.count() / 1000.0, " s"));
      }
    }
  }
  mine.sleeps.store(0);
  return failed_;
}

absl::Status ShmMailbox::LookAtPeers() {
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (!peers_[i]) continue;
    const Peer& peer = *peers_[i];
    if (!peer.place && peer.awaited.empty() && peer.outgoing.empty()) continue;
    const int member = static_cast<int>(i);
    const Cell& its = CellOf(member);
    const ProcessIdentity process{.pid = its.pid.load(), .start_time = its.start_time.load()};
    const bool gone = process.pid != 0 && LookAt(process) == ProcessState::kGone;
    const bool left = its.left.load() != 0;
    if (!gone && !left) continue;
    // It may have written, and ended, since the rings were read.
    if (Progress()) return absl::OkStatus();
    return Fail(member, left ? "has given up" : "is gone");
  }
  return absl::OkStatus();
}

absl::Status ShmMailbox::Fail(int member, const std::string& what) {
  return absl::UnavailableError(absl::StrCat("shared memory: rank ",
                                             options_.ranks[static_cast<std::size_t>(member)],
                                             " (pid ", CellOf(member).pid.load(), ") ", what));
}

}  // namespace muster::trainer

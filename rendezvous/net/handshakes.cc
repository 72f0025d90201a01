#include "rendezvous/net/handshakes.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

namespace muster::rendezvous {
namespace {

// Above this many remembered addresses, those that can be forgotten are removed.
constexpr std::size_t kMostLines = 4096;

bool OtherEndHasClosed(int fd) {
  pollfd look{.fd = fd, .events = POLLRDHUP, .revents = 0};
  return ::poll(&look, 1, 0) == 1;
}

}  // namespace

Handshakes::Handshakes(boost::asio::io_context& io, Begin begin, Failed failed,
                       HandshakeLimits limits)
    : io_(io),
      begin_(std::move(begin)),
      failed_(std::move(failed)),
      limits_(limits),
      sweep_at_(kMostLines),
      at_once_(limits.at_once),
      timer_(io),
      rest_(io) {}

std::size_t Handshakes::Add(Socket connection, const Room& room) {
  at_once_ = std::clamp<std::size_t>(room.at_once, 1, limits_.at_once);
  boost::system::error_code error;
  const Endpoint peer = HostEndpoint(connection.remote_endpoint(error));
  if (error) return 0;
  const Address line = HostLine(peer.address());
  const Turn turn = next_turn_++;
  waiting_.emplace(turn, Waiting{std::move(connection), peer, line});
  lines_[line].waiting.insert(turn);
  Settle(line);
  StartThoseWhoCan();
  std::size_t dropped = 0;
  while (waiting_.size() > room.waiting) {
    const auto own = lines_.find(line);
    const bool has_own = own != lines_.end() && !own->second.waiting.empty();
    Drop(has_own ? *own->second.waiting.begin() : waiting_.begin()->first);
    ++dropped;
  }
  AwaitSlow();
  return dropped;
}

bool Handshakes::Called(const Peer& peer) {
  const std::optional<Endpoint> endpoint = HostEndpoint(peer);
  const auto found = endpoint ? by_peer_.find(*endpoint) : by_peer_.end();
  if (found == by_peer_.end()) return false;
  End(found->second);
  return true;
}

void Handshakes::Start(Turn turn) {
  Waiting waiting = std::move(waiting_.extract(turn).mapped());
  Line& line = lines_[waiting.line];
  line.waiting.erase(turn);
  // Thousands may have given up while waiting.
  if (OtherEndHasClosed(waiting.connection.native_handle())) {
    Settle(waiting.line);
    if (failed_) failed_(waiting.peer.address());
    return;
  }
  // The same peer again: its former connection has ended, unnoticed so far.
  if (const auto before = by_peer_.find(waiting.peer); before != by_peer_.end()) {
    End(before->second);
  }
  const int fd = ::fcntl(waiting.connection.native_handle(), F_DUPFD_CLOEXEC, 0);
  if (fd >= 0) {
    Socket watch(io_);
    boost::system::error_code ignored;
    watch.assign(waiting.peer.protocol(), fd, ignored);
    // gRPC shuts a connection down before it closes it; after that neither descriptor reports
    // anything.
    watch.async_wait(Socket::wait_error,
                     lifetime_.Guard([this, turn](const boost::system::error_code& error) {
                       if (!error && under_way_.contains(turn)) Fail(turn);
                     }));
    under_way_.emplace(turn, UnderWay{std::move(watch), waiting.peer, waiting.line,
                                      std::chrono::steady_clock::now()});
    by_peer_.emplace(waiting.peer, turn);
    lines_[waiting.line].under_way.insert(turn);
  }
  Settle(waiting.line);
  // Without a second descriptor it is not tracked: descriptors are nearly used up, so there are few
  // such.
  begin_(std::move(waiting.connection));
}

void Handshakes::StartThoseWhoCan() {
  while (!ready_.empty() && under_way_.size() < at_once_) {
    auto next = ready_.upper_bound(last_);
    if (next == ready_.end()) next = ready_.begin();
    last_ = *next;
    Start(*lines_.at(last_).waiting.rbegin());
  }
}

void Handshakes::End(Turn turn) {
  const auto ended = under_way_.extract(turn);
  by_peer_.erase(ended.mapped().peer);
  lines_.at(ended.mapped().line).under_way.erase(turn);
  Settle(ended.mapped().line);
  StartThoseWhoCan();
}

void Handshakes::Fail(Turn turn) {
  const Address host = under_way_.at(turn).peer.address();
  Rest(under_way_.at(turn).line);
  End(turn);
  if (failed_) failed_(host);
}

void Handshakes::Rest(const Address& address) {
  Line& line = lines_.at(address);
  if (!line.failures) line.failures.emplace(limits_.failures_in_a_second, limits_.failures_at_once);
  line.rests_until = line.failures->Next(std::chrono::steady_clock::now());
  // By then its burst allowance is full again.
  line.remembered_until = line.rests_until + std::chrono::seconds(1) * limits_.failures_at_once /
                                                 limits_.failures_in_a_second;
}

void Handshakes::AwaitRested() {
  if (rest_.waits() || resting_.empty()) return;
  TimePoint first = TimePoint::max();
  for (const Address& address : resting_) first = std::min(first, lines_.at(address).rests_until);
  rest_.At(first, [this] {
    for (const Address& address : std::set<Address>(resting_)) Settle(address);
    StartThoseWhoCan();
    AwaitRested();
    AwaitSlow();
  });
}

void Handshakes::Drop(Turn turn) {
  const auto dropped = waiting_.extract(turn);
  lines_.at(dropped.mapped().line).waiting.erase(turn);
  Settle(dropped.mapped().line);
  boost::system::error_code ignored;
  dropped.mapped().connection.set_option(Socket::linger(true, 0), ignored);
}

void Handshakes::Settle(const Address& address) {
  const auto found = lines_.find(address);
  const bool waits = found != lines_.end() && !found->second.waiting.empty();
  const TimePoint now = std::chrono::steady_clock::now();
  const bool rests = waits && found->second.rests_until > now;
  const bool full = waits && !rests && found->second.under_way.size() >= limits_.of_address;
  const auto list = [&address](std::set<Address>& as, bool is) {
    if (is) {
      as.insert(address);
    } else {
      as.erase(address);
    }
  };
  list(ready_, waits && !rests && !full);
  list(delayed_, full);
  list(resting_, rests);
  if (rests) AwaitRested();
  const auto over = [now](const auto& line) {
    return line.second.waiting.empty() && line.second.under_way.empty() &&
           line.second.remembered_until <= now;
  };
  if (found != lines_.end() && over(*found)) lines_.erase(found);
  if (lines_.size() > sweep_at_) {
    std::erase_if(lines_, over);
    // Keeps the amortized cost of a change constant.
    sweep_at_ = std::max(kMostLines, 2 * lines_.size());
  }
}

std::map<Handshakes::Turn, Handshakes::UnderWay>::iterator Handshakes::Slowest() {
  if (waiting_.empty() || under_way_.empty()) return under_way_.end();
  if (under_way_.size() >= at_once_) return under_way_.begin();
  Turn slowest = next_turn_;
  for (const Address& address : delayed_) {
    slowest = std::min(slowest, *lines_.at(address).under_way.begin());
  }
  return under_way_.find(slowest);
}

void Handshakes::AwaitSlow() {
  if (timer_.waits()) return;
  const auto slowest = Slowest();
  if (slowest == under_way_.end()) return;
  timer_.At(slowest->second.since + limits_.patience, [this] {
    const TimePoint now = std::chrono::steady_clock::now();
    for (auto slow = Slowest();
         slow != under_way_.end() && slow->second.since + limits_.patience <= now;
         slow = Slowest()) {
      ++slow_;
      ::shutdown(slow->second.watch.native_handle(), SHUT_RDWR);
      Fail(slow->first);
    }
    AwaitSlow();
  });
}

}  // namespace muster::rendezvous

#include "test/bench/store/fan_out.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "test/bench/store/connection.h"
#include "test/bench/store/wire.h"

namespace muster::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Round trips between the waits and the set. A server has looked at all connections between two of
// them, so all waits are pending.
constexpr int kRoundTrips = 3;
constexpr std::chrono::microseconds kBetweenLooks(50);

double Release(const Connection& setter, const std::vector<Connection>& waiters, int poller,
               const std::string& key) {
  std::string wait;
  EncodeWait(key, wait);
  for (const Connection& waiter : waiters) waiter.Send(wait);
  for (int i = 0; i < kRoundTrips; ++i) setter.Add("/bench/round_trip", 1);

  std::string set;
  EncodeSet(key, "now", set);
  const auto start = Clock::now();
  setter.Send(set);
  std::vector<epoll_event> ready(waiters.size());
  for (std::size_t told = 0; told < waiters.size();) {
    // Neither asleep, so that the server would pay for each time that it wakes us up, nor always
    // looking, so that it would have to wait for the poller's lock.
    for (const auto next = Clock::now() + kBetweenLooks; Clock::now() < next;) {
    }
    const int count = epoll_wait(poller, ready.data(), static_cast<int>(ready.size()), 0);
    if (count < 0) Die("epoll_wait");
    told += static_cast<std::size_t>(count);
  }
  const std::chrono::duration<double, std::milli> took = Clock::now() - start;
  for (const Connection& waiter : waiters) waiter.Receive(1);
  return took.count();
}

}  // namespace

void MeasureFanOut(std::uint16_t port, int clients, int times) {
  const int poller = epoll_create1(EPOLL_CLOEXEC);
  if (poller < 0) Die("epoll_create1");
  const Connection setter(port);
  std::vector<Connection> waiters;
  waiters.reserve(static_cast<std::size_t>(clients));
  for (int i = 0; i < clients; ++i) {
    waiters.emplace_back(port);
    // One event for each wait, as nothing else comes: so that it need not be read in between.
    epoll_event interest{.events = EPOLLIN | EPOLLET,
                         .data = {.u32 = static_cast<std::uint32_t>(i)}};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, waiters.back().fd(), &interest) != 0) Die("epoll_ctl");
  }

  Release(setter, waiters, poller, "/bench/warm_up");
  std::string list;
  for (int i = 0; i < times; ++i) {
    const double ms = Release(setter, waiters, poller, "/bench/released/" + std::to_string(i));
    list += (i == 0 ? "" : ", ") + std::to_string(ms);
  }
  std::printf("{\"ms\": [%s]}\n", list.c_str());
  close(poller);
}

}  // namespace muster::bench

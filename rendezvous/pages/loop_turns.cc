#include "rendezvous/pages/loop_turns.h"

#include <chrono>

#include "third_party/system/asio_wait.h"

namespace muster::rendezvous {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::nanoseconds Micros(int count) {
  return std::chrono::microseconds(count);
}

// From a beat to what costs a lease; 10 ms are what no turn should take.
constexpr std::chrono::nanoseconds kTurns[] = {Micros(10),      Micros(50),      Micros(100),
                                               Micros(500),     Micros(1000),    Micros(2500),
                                               Micros(5000),    Micros(10'000),  Micros(25'000),
                                               Micros(100'000), Micros(250'000), Micros(1'000'000)};

}  // namespace

LoopTurns::LoopTurns() : turns_(kTurns) {}

void LoopTurns::Run(boost::asio::io_context& io) {
  Clock::time_point begun = Clock::now();
  asio::woke = &begun;
  while (io.run_one() > 0) {
    const Clock::time_point now = Clock::now();
    turns_.Observe(now - begun);
    begun = now;
  }
  asio::woke = nullptr;
}

}  // namespace muster::rendezvous

#include "trainer/comm/flight_watch.h"

#include <chrono>
#include <csignal>
#include <exception>
#include <iterator>
#include <utility>

namespace muster::trainer {
namespace {

constexpr std::chrono::milliseconds kAskEvery(50);
constexpr std::chrono::seconds kAskedByAnother(1);

}  // namespace

FlightWatch::~FlightWatch() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void FlightWatch::Add(std::function<FlightState()> ask, std::function<void()> on_done) {
  const std::lock_guard lock(mutex_);
  added_.push_back({std::move(ask), std::move(on_done)});
  if (++under_way_ > 1) return;
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  changed_.notify_one();
}

void FlightWatch::AskAll() {
  const std::unique_lock asking(asking_, kAskedByAnother);
  if (!asking.owns_lock()) return;
  {
    const std::lock_guard lock(mutex_);
    watched_.insert(watched_.end(), std::make_move_iterator(added_.begin()),
                    std::make_move_iterator(added_.end()));
    added_.clear();
  }
  const std::size_t over = std::erase_if(watched_, [](const Watched& one) {
    FlightState progress = FlightState::kFailed;
    try {
      progress = one.ask();
    } catch (const std::exception&) {
      // Whoever waits for it is told why.
    }
    if (progress == FlightState::kDone) one.on_done();
    return progress != FlightState::kUnderWay;
  });
  const std::lock_guard lock(mutex_);
  under_way_ -= over;
}

void FlightWatch::Run() {
  // Signals are for the rank's other threads.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || under_way_ > 0; });
    if (changed_.wait_for(lock, kAskEvery, [this] { return ending_; })) return;
    lock.unlock();
    AskAll();
    lock.lock();
  }
}

}  // namespace muster::trainer

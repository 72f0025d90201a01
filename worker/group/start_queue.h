// Starts workers one after another, and the rest later where the system just has no process to
// give.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "absl/status/status.h"
#include "base/lifetime.h"
#include "worker/worker_spec.h"

namespace muster::worker {

// Lives on the loop's thread. Of `on_over` and `on_failed` one is called, once, and from the loop,
// so that nobody hears of a failure before Begin() has returned.
class StartQueue {
 public:
  struct Callbacks {
    // Starts one worker; ResourceExhausted: there is no process to be had now.
    std::function<absl::Status(const WorkerSpec&)> start;
    // There is nobody to be started any more: all were, or the rest was dropped.
    std::function<void()> on_over;
    // This one could not be started; the rest were not tried.
    std::function<void(const WorkerSpec&, const absl::Status&)> on_failed;
  };

  StartQueue(boost::asio::io_context& io, Callbacks callbacks)
      : io_(io), callbacks_(std::move(callbacks)), retry_(io) {}
  StartQueue(const StartQueue&) = delete;
  StartQueue& operator=(const StartQueue&) = delete;

  // In order. Where there is no process to be had (fork: EAGAIN, ENOMEM), the rest are tried again
  // from the loop, for two seconds, before that is a failure. Once only.
  void Begin(std::vector<WorkerSpec> specs);

  // Those that still wait are not started any more.
  void Drop();

 private:
  // Starts those that wait, the first of which has been tried `tries` times.
  void StartRest(std::size_t tries);
  void Post(std::function<void()> call);

  boost::asio::io_context& io_;
  const Callbacks callbacks_;
  // In reverse order.
  std::vector<WorkerSpec> waiting_;
  boost::asio::steady_timer retry_;
  base::Lifetime lifetime_;
};

}  // namespace muster::worker

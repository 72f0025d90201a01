// Starts workers one after another, and the rest later if the system cannot create a process just
// now.
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

// Lives on the loop's thread. Either `on_over` or `on_failed` is called, once, from the loop, so
// that nobody hears of a failure before Begin() has returned.
class StartQueue {
 public:
  struct Callbacks {
    // Starts one worker; ResourceExhausted: the system cannot create a process just now.
    std::function<absl::Status(const WorkerSpec&)> start;
    // There are no more workers to start: all were started, or the rest was dropped.
    std::function<void()> on_over;
    // This one could not be started; the rest were not tried.
    std::function<void(const WorkerSpec&, const absl::Status&)> on_failed;
  };

  StartQueue(boost::asio::io_context& io, Callbacks callbacks)
      : io_(io), callbacks_(std::move(callbacks)), retry_(io) {}
  StartQueue(const StartQueue&) = delete;
  StartQueue& operator=(const StartQueue&) = delete;

  // Starts them in order. If the system cannot create a process (fork: EAGAIN, ENOMEM), the rest
  // are tried again from the loop for two seconds before that counts as a failure. Once only.
  void Begin(std::vector<WorkerSpec> specs);

  // Workers that are still waiting are not started.
  void Drop();

 private:
  // Starts the waiting workers, the first of which has been tried `tries` times.
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

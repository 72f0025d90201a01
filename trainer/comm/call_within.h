// A limit to the time of calls that have none.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace muster::trainer {

// What `call` returns or throws, from a thread of its own. When it takes longer than `timeout`,
// throws std::runtime_error, "`what` was not done within 300 s", and leaves that thread where it
// is: what `call` refers to must live as long as the process, which should then be ended without
// destroying what the thread may be using.
template <typename T>
T CallWithin(std::chrono::milliseconds timeout, const std::string& what, std::function<T()> call) {
  std::packaged_task<T()> task(std::move(call));
  std::future<T> result = task.get_future();
  std::thread(std::move(task)).detach();
  if (result.wait_for(timeout) == std::future_status::timeout) {
    throw std::runtime_error(
        what + " was not done within " +
        std::to_string(std::chrono::duration_cast<std::chrono::seconds>(timeout).count()) + " s");
  }
  return result.get();
}

}  // namespace muster::trainer

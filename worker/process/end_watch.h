// Hears of the end of a child, and leaves the waiting (waitpid) to whoever owns it.
#pragma once

#include <sys/types.h>

#include <functional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "base/lifetime.h"

namespace muster::worker {

// Lives on the loop's thread. Where the system has no descriptor left, the end is not heard of.
class EndWatch {
 public:
  // `child` has not been waited for. `on_end` runs once, from the loop; it may destroy the
  // EndWatch.
  EndWatch(boost::asio::io_context& io, pid_t child, std::function<void()> on_end);
  EndWatch(const EndWatch&) = delete;
  EndWatch& operator=(const EndWatch&) = delete;

 private:
  boost::asio::posix::stream_descriptor pidfd_;
  base::Lifetime lifetime_;
};

}  // namespace muster::worker

// The agent's own log lines, on their way to the user's terminal.
#pragma once

#include <mutex>
#include <thread>

#include <spdlog/sinks/base_sink.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "worker/output/console.h"

namespace muster::launcher {

// Writes to the console's stderr, so that a line of ours never splits a worker's and a slow
// terminal never holds up the loop. May be used from any thread: lines from other threads (gRPC's)
// are passed through the loop. `io` and `console` must outlive it.
class LogSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  // Made on the loop's thread.
  LogSink(boost::asio::io_context& io, worker::Console& console) : io_(io), console_(console) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    if (std::this_thread::get_id() == loop_thread_) {
      console_.Write(worker::StreamKind::kStderr, {line.data(), line.size()});
      return;
    }
    boost::asio::post(io_, [this, text = std::string(line.data(), line.size())] {
      console_.Write(worker::StreamKind::kStderr, text);
    });
  }
  void flush_() override {}

 private:
  boost::asio::io_context& io_;
  worker::Console& console_;
  const std::thread::id loop_thread_ = std::this_thread::get_id();
};

}  // namespace muster::launcher

// The agent's own log lines, on their way to the user's terminal.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/sink.h>
#include <spdlog/spdlog.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "base/program.h"
#include "launcher/cli/launch_config.h"
#include "worker/output/console.h"

namespace muster::launcher {

// Writes to the console's stderr, so that a line of ours never splits a worker's and a slow
// terminal never holds up the loop. May be used from any thread: lines from other threads (gRPC's)
// are passed through the loop. `io` and `console` must outlive it.
//
// A line may be logged while another is being written: a console that loses what it is given says
// so in a line of the log. Hence the lock is for the formatter alone, and not spdlog's base_sink,
// which holds one for as long as it writes.
class LogSink final : public spdlog::sinks::sink {
 public:
  // Made on the loop's thread.
  LogSink(boost::asio::io_context& io, worker::Console& console) : io_(io), console_(console) {}

  void log(const spdlog::details::log_msg& message) override {
    std::string line = Format(message);
    if (std::this_thread::get_id() == loop_thread_) {
      console_.Write(worker::StreamKind::kStderr, line);
      return;
    }
    boost::asio::post(
        io_, [this, line = std::move(line)] { console_.Write(worker::StreamKind::kStderr, line); });
  }

  void flush() override {}

  void set_pattern(const std::string& pattern) override {
    set_formatter(std::make_unique<spdlog::pattern_formatter>(pattern));
  }

  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override {
    const std::lock_guard lock(mutex_);
    formatter_ = std::move(formatter);
  }

 private:
  std::string Format(const spdlog::details::log_msg& message) {
    spdlog::memory_buf_t line;
    const std::lock_guard lock(mutex_);
    formatter_->format(message, line);
    return std::string(line.data(), line.size());
  }

  boost::asio::io_context& io_;
  worker::Console& console_;
  const std::thread::id loop_thread_ = std::this_thread::get_id();
  std::mutex mutex_;
  std::unique_ptr<spdlog::formatter> formatter_ = std::make_unique<spdlog::pattern_formatter>();
};

// From now on the agent logs what is as grave as `level` to `console`.
inline void SendLogTo(boost::asio::io_context& io, worker::Console& console, LogLevel level) {
  auto logger = std::make_shared<spdlog::logger>("muster", std::make_shared<LogSink>(io, console));
  logger->set_pattern(base::kLogPattern);
  // The words are the same there.
  logger->set_level(spdlog::level::from_str(WordFor(kLogLevels, level)));
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace muster::launcher

#include "rendezvous/keeper/keeper_log.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>

#include <spdlog/details/null_mutex.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "base/log_pattern.h"

namespace muster::rendezvous {
namespace {

class Sink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit Sink(int fd) : fd_(fd) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    std::string text(line.data(), line.size());
    if (lost_ > 0) {
      text = absl::StrCat("musterd: ", lost_, lost_ == 1 ? " line is" : " lines are",
                          " missing here: nothing was reading\n", text);
    }
    if (Put(text)) {
      lost_ = 0;
    } else {
      ++lost_;
    }
  }
  void flush_() override {}

 private:
  // A pipe that can be written to has room for PIPE_BUF bytes. O_NONBLOCK would be set for all who
  // share the stream.
  bool Put(std::string_view text) const {
    pollfd stream = {fd_, POLLOUT, 0};
    if (poll(&stream, 1, 0) != 1 || (stream.revents & POLLOUT) == 0) return false;
    return write(fd_, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF)) >= 0;
  }

  const int fd_;
  std::uint64_t lost_ = 0;
};

}  // namespace

void UseKeeperLog(const std::string& name, int fd) {
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(name, std::make_shared<Sink>(fd)));
  spdlog::set_pattern(base::kLogPattern);
}

}  // namespace muster::rendezvous

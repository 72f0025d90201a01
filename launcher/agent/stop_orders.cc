#include "launcher/agent/stop_orders.h"

#include <csignal>
#include <cstddef>
#include <utility>

#include <boost/asio/buffer.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "launcher/agent/inherited_fd.h"

namespace muster::launcher {
namespace {

// Longer than any order; what is longer is none.
constexpr std::size_t kMaxLine = 16;

}  // namespace

std::optional<int> TakeOrdersFd(Environment& environment) {
  return TakeInheritedFd(environment, kOrdersVariable);
}

std::string StopOrder(int signal) {
  return absl::StrCat(signal, "\n");
}

StopOrders::StopOrders(boost::asio::io_context& io, int fd, std::function<void(int)> on_stop)
    : input_(io, fd), on_stop_(std::move(on_stop)) {}

void StopOrders::Await() {
  input_.async_read_some(boost::asio::buffer(piece_),
                         [this](boost::system::error_code error, std::size_t size) {
                           if (error == boost::asio::error::operation_aborted) return;
                           Hear(size);
                           if (!error) Await();
                         });
}

void StopOrders::Hear(std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    if (piece_[i] != '\n') {
      if (line_.size() < kMaxLine) line_ += piece_[i];
      continue;
    }
    int signal = 0;
    const bool is_order = absl::SimpleAtoi(std::exchange(line_, ""), &signal);
    if (is_order && signal > 0 && signal < NSIG) on_stop_(signal);
  }
}

}  // namespace muster::launcher

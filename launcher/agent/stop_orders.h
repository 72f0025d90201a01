// Orders to end a run that come from the command that has started it, and not as signals.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "launcher/environment.h"

namespace muster::launcher {

// Names the descriptor that orders are read from. Srun knows no signal that it would pass on and
// that leaves workers time, but it passes on its standard input.
inline constexpr char kOrdersVariable[] = "MUSTER_ORDERS_FD";

// The descriptor, where the variable names one that is open. The variable is taken out: workers do
// not have the descriptor.
std::optional<int> TakeOrdersFd(Environment& environment);

// One order, for the signal that the command got.
std::string StopOrder(int signal);

// Reads orders until they end. Lives on the loop's thread.
class StopOrders {
 public:
  // Takes over `fd`. `on_stop` gets the number of the signal that an order stands for.
  StopOrders(boost::asio::io_context& io, int fd, std::function<void(int)> on_stop);

  void Await();

 private:
  void Hear(std::size_t size);

  boost::asio::posix::stream_descriptor input_;
  const std::function<void(int)> on_stop_;
  std::array<char, 64> piece_;
  std::string line_;
};

}  // namespace muster::launcher

// Boost.Asio, compiled once rather than in every unit that includes it.
#include <sys/epoll.h>

#include "third_party/system/asio_wait.h"

namespace muster::asio {
namespace {

int Wait(int epoll, epoll_event* events, int most, int timeout) {
  const int ready = ::epoll_wait(epoll, events, most, timeout);
  if (woke != nullptr) *woke = std::chrono::steady_clock::now();
  return ready;
}

}  // namespace
}  // namespace muster::asio

// It has no hook between waiting and running a handler. It calls this in one place, epoll_reactor's
// run().
#define epoll_wait ::muster::asio::Wait
#include <boost/asio/impl/src.hpp>

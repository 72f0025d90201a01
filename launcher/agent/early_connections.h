// Connections of workers that are faster than their own agent.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include <boost/asio/ip/tcp.hpp>

namespace muster::launcher {

// Workers on other nodes may start, and connect to the store of their round, before the agent that
// is to serve it has heard that it is. Their connections wait here, unread, for that moment.
//
// There may be as many as one for each worker of a large job, but never so many that the agent is
// left without descriptors: 4096, and at most a quarter of what RLIMIT_NOFILE allows. Beyond that,
// connections whose peer has hung up are dropped, the oldest first; if there are none, the newcomer
// is closed: one that has waited longer is no more likely to be a stranger, and a worker that is
// turned away tries again. Lives on the loop's thread.
class EarlyConnections {
 public:
  using Socket = boost::asio::ip::tcp::socket;

  // Keeps the connection, or closes it.
  void Add(Socket connection);

  // The connections whose other end has not hung up, in order of arrival. None is kept here.
  std::vector<Socket> Take();

  // Closes all of them.
  void Clear() { waiting_.clear(); }

 private:
  // Checks a few that have gone unchecked for longest, and closes those that have hung up.
  void DropSomeThatHungUp();

  std::deque<Socket> waiting_;
  // Where to look next.
  std::size_t next_look_ = 0;
};

}  // namespace muster::launcher

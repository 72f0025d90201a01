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
// left without descriptors: 4096, and at most a quarter of what RLIMIT_NOFILE allows. Of more those
// that have hung up go, the oldest first; where there is none, the newcomer is closed: whoever has
// waited longer is no more likely to be a stranger, and a worker that is turned away tries again.
// Lives on the loop's thread.
class EarlyConnections {
 public:
  using Socket = boost::asio::ip::tcp::socket;

  // Keeps it, or closes it.
  void Add(Socket connection);

  // Those whose other end has not hung up, in order of arrival. None is left here.
  std::vector<Socket> Take();

  // Closes them.
  void Clear() { waiting_.clear(); }

 private:
  // Looks at some that have not been looked at for longest, and closes those that have hung up.
  void DropSomeThatHungUp();

  std::deque<Socket> waiting_;
  // Where to look next.
  std::size_t next_look_ = 0;
};

}  // namespace muster::launcher

#include "worker/process/end_watch.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

namespace muster::worker {

EndWatch::EndWatch(boost::asio::io_context& io, pid_t child, std::function<void()> on_end)
    : pidfd_(io) {
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  if (pidfd < 0) return;
  pidfd_.assign(pidfd);
  pidfd_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                    lifetime_.Guard([on_end = std::move(on_end)](boost::system::error_code error) {
                      if (!error) on_end();
                    }));
}

}  // namespace muster::worker

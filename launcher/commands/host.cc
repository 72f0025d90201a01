#include "launcher/commands/host.h"

#include <boost/asio/io_context.hpp>

#include "launcher/tree/host_process.h"

namespace muster::launcher {

int HostCommand() {
  boost::asio::io_context io(1);
  HostProcess host(io, [&io] { io.stop(); });
  io.run();
  return host.exit_code();
}

}  // namespace muster::launcher

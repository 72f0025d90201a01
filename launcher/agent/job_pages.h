// --http: the job, shown by the agent that hosts its rendezvous.
#pragma once

#include <memory>

#include <boost/asio/io_context.hpp>

#include "absl/status/statusor.h"
#include "launcher/config/launch_config.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/pages/daemon_pages.h"
#include "rendezvous/server.h"

namespace muster::launcher {

// As musterd --http shows its jobs (rendezvous/pages/daemon_pages.h), to who has the token of the
// rendezvous; where that has no port, and so no token, to who has the user's own. `server` is the
// rendezvous in this process, and must outlive the result; null: another node has it, and shows the
// job. Null where nothing is to be shown. The error is one sentence.
absl::StatusOr<std::unique_ptr<rendezvous::DaemonPages>> OpenJobPages(
    boost::asio::io_context& io, const LaunchConfig& config,
    const rendezvous::Credentials& credentials, rendezvous::Server* server,
    const rendezvous::LoopTurns& turns);

}  // namespace muster::launcher

// This run among the others on the machine: its entry for `muster ps`, and who uses the same GPUs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "absl/status/statusor.h"

#include "launcher/cli/launch_config.h"
#include "launcher/machine/environment.h"
#include "launcher/machine/nproc.h"
#include "launcher/run/run_registry.h"
#include "rendezvous/core/values/types.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/net/endpoint.h"
#include "rendezvous/net/http_server.h"
#include "rendezvous/server/daemon_pages.h"
#include "rendezvous/server/server.h"

namespace muster::launcher {

// The entry exists for as long as this object does. The run does not depend on it: errors are
// logged as warnings. On the loop's thread.
//
// Changes are written a moment later, so that a run starts its workers first, and one that ends at
// once leaves the disk alone. A run with GPUs registers in the constructor, so that runs which
// start together see one another.
class RunEntry {
 public:
  // Warns about devices that another run uses, then registers. `base` is the workers' environment,
  // `own` the launcher's. `launched`: as RunInfo's.
  RunEntry(boost::asio::io_context& io, const LaunchConfig& config, const Environment& own,
           const Environment& base, const Machine& machine, const std::string& log_dir,
           bool launched);

  void Show(RunState state);
  // The workers of this round are starting.
  void ShowRound(const rendezvous::Assignment& assignment);
  // Writes nothing more; the entry remains as it is until destruction.
  void Freeze() { timer_.cancel(); }

 private:
  void WriteSoon();
  void Write();

  RunInfo info_;
  const base::UserPlace place_;
  std::unique_ptr<RunRegistration> registration_;
  bool failed_ = false;
  bool writes_soon_ = false;
  boost::asio::steady_timer timer_;
};

// --http: the job, shown by the agent that hosts its rendezvous.

// As musterd --http shows its jobs (rendezvous/server/daemon_pages.h), to who has the token of the
// rendezvous; where that has no port, and so no token, to who has the user's own. `server` is the
// rendezvous in this process, and must outlive the result; null: another node has it, and shows the
// job. Null where nothing is to be shown. The error is one sentence.
absl::StatusOr<std::unique_ptr<rendezvous::DaemonPages>> OpenJobPages(
    boost::asio::io_context& io, const LaunchConfig& config,
    const rendezvous::Credentials& credentials, rendezvous::Server* server,
    const rendezvous::LoopTurns& turns);

// /healthz: whether a run is healthy, for those who look after the machine.

// Answers whoever asks:
//   GET /healthz         200, as the loop goes round; an agent that stands still does not answer
//   GET /healthz/ready   200 while the workers run, else 503
// and says nothing else: no name, no version, no reason. Anything else is 404, 405 or 400. Lives on
// the loop's thread.
class HealthServer {
 public:
  // As rendezvous::HttpServer::Open.
  static absl::StatusOr<std::unique_ptr<HealthServer>> Open(boost::asio::io_context& io,
                                                            const rendezvous::Endpoint& endpoint);

  // Whether the workers run; not before this is first called.
  void ShowReady(bool ready) { ready_ = ready; }

  std::uint16_t port() const { return server_->port(); }

 private:
  HealthServer() = default;

  rendezvous::HttpAnswer AnswerTo(const rendezvous::HttpRequest& request) const;

  bool ready_ = false;
  std::unique_ptr<rendezvous::HttpServer> server_;
};

}  // namespace muster::launcher

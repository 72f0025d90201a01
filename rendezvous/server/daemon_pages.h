// A daemon's HTTP server (musterd --http): its jobs as JSON, and metrics.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "absl/status/statusor.h"

#include "base/durations.h"
#include "rendezvous/fronts/daemon_loop.h"
#include "rendezvous/fronts/subscriptions.h"
#include "rendezvous/identity/keyring.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/net/endpoint.h"
#include "rendezvous/net/http_server.h"
#include "rendezvous/pages/metrics.h"
#include "rendezvous/pages/page_answers.h"
#include "rendezvous/server/server.h"

namespace muster::rendezvous {

// A daemon's metrics: one user's jobs, and the process itself.

// Measures how long handlers block a loop. While one handler runs, no message is read, no deadline
// is kept and no keep-alive is acknowledged. So each handler is timed, from the loop's return from
// the kernel or the end of the previous handler until its own end; in wall-clock time, since a
// blocked loop is blocked whether it computes or sleeps. Costs one clock reading per handler and
// per wait (test/bench/rendezvous:loop_turns_benchmark).
class LoopTurns {
 public:
  LoopTurns();
  LoopTurns(const LoopTurns&) = delete;
  LoopTurns& operator=(const LoopTurns&) = delete;

  // Like io.run(), on the only thread that runs `io`.
  void Run(boost::asio::io_context& io);

  const base::DurationHistogram& turns() const { return turns_; }

 private:
  base::DurationHistogram turns_;
};

// For one user's jobs, leases, stores and journal. `daemon_loop`: null before the user's first job.
void WriteKeptFigures(const DaemonLoop* daemon_loop, Exposition& out);

// For the process, over all users: limits, connections, loop and processor. `turns`: null if not
// measured. `started`: in wall-clock time.
void WriteProcessFigures(const Server& server, const LoopTurns* turns,
                         std::chrono::system_clock::time_point started, Exposition& out);

// Answers
//   GET /healthz             200, without a token, as long as the loop runs
//   GET /readyz              200, without a token; 503 once the daemon takes no new nodes. Also 200
//                            while some tenants' journals are not open: the others need the daemon,
//                            and must not be cut off because of one damaged journal
//   GET /metrics             for Prometheus
//   GET /                    a page, without a token; it shows what /api/v1/events sends
//   GET /api/v1/jobs         an array of jobs (job_view.h)
//   GET /api/v1/jobs/RUN_ID  one of them, or 404
//   GET /api/v1/jobs/RUN_ID/logs?rank=R  the last lines of a rank (page_answers.h)
//   GET /api/v1/events       that array now, and again when something has changed (server-sent
//                            events), at most four times a second and at least every ten seconds;
//                            every second while ranks report steps, if it is short
// While a tenant's journal is not open, its metrics say only that, and everything else gets 503
// with the reason. Metrics and jobs require `Authorization: Bearer TOKEN`, where TOKEN is the
// content of a token file: the daemon's, a tenant's, or a metrics token made by `muster token
// metrics`, which can do nothing else, and cannot read logs. A tenant sees its own jobs. A changed
// or removed token is refused a second later, and its streams end within ten. Without a token
// (--insecure) a request is answered only if its Host is an address, this machine's name or the
// name that was listened on: this keeps out another site's page whose name its owner has pointed at
// this machine (DNS rebinding). Lives on the loop's thread.
class DaemonPages final : private ChangeFeed::Publisher {
 public:
  // As HttpServer::Open. `server` must outlive it, and so must `turns`, the durations of the loop's
  // handlers; null: not measured.
  static absl::StatusOr<std::unique_ptr<DaemonPages>> Open(boost::asio::io_context& io,
                                                           const Endpoint& endpoint,
                                                           const Credentials& credentials,
                                                           Server& server,
                                                           const LoopTurns* turns = nullptr);
  ~DaemonPages() override;
  DaemonPages(const DaemonPages&) = delete;
  DaemonPages& operator=(const DaemonPages&) = delete;

  std::uint16_t port() const { return http_->port(); }

  // The answer to a request; public for tests.
  HttpAnswer AnswerTo(const HttpRequest& request);

 private:
  DaemonPages(boost::asio::io_context& io, std::string name, const Credentials& credentials,
              Server& server, const LoopTurns* turns);

  HttpAnswer AnswerToLogs(const std::string& run_id, const HttpRequest& request,
                          const std::string& tenant);
  // Why the tenant's jobs are unavailable, if so: as Server::LoopOf, which opens the tenant's
  // journal, or DaemonLoop::Standing.
  absl::Status StandingOf(const std::string& tenant);
  std::vector<JobSnapshot> JobsOf(const std::string& tenant) const;
  std::string Metrics(const std::string& tenant) const;
  void Publish(const ChangeFeed::News& news) override;
  bool is_watched() const override { return http_ != nullptr && !http_->Topics().empty(); }
  std::chrono::milliseconds pause() const override { return pause_; }
  void EndForeignStreams();

  boost::asio::io_context& io_;
  PageAccess access_;
  Server& server_;
  const LoopTurns* const turns_;
  const std::chrono::system_clock::time_point started_ = std::chrono::system_clock::now();
  // Until the next update caused by ranks' reports.
  std::chrono::milliseconds pause_ = ChangeFeed::kAtLeast;
  // The keys at the last check of which streams may go on.
  Keys streams_keys_;
  std::unique_ptr<HttpServer> http_;
};

// The HTTP server of a standby daemon (musterd --http with --state): its health.

// Its metrics.
void WriteStandbyFigures(bool follows, Exposition& out);

// Answers
//   GET /healthz   200, without a token
//   GET /readyz    503, without a token: nodes must not come here
//   GET /metrics   for Prometheus; with a token, as DaemonPages
// and 503 for everything else, as another daemon leads. Must be destroyed before DaemonPages are
// opened in its place. Lives on the loop's thread.
class StandbyPages {
 public:
  // As DaemonPages::Open. `follows` says whether this daemon could take over the jobs at once.
  static absl::StatusOr<std::unique_ptr<StandbyPages>> Open(boost::asio::io_context& io,
                                                            const Endpoint& endpoint,
                                                            const Credentials& credentials,
                                                            std::function<bool()> follows);
  StandbyPages(const StandbyPages&) = delete;
  StandbyPages& operator=(const StandbyPages&) = delete;

  // The answer to a request; public for tests.
  HttpAnswer AnswerTo(const HttpRequest& request);

 private:
  StandbyPages(std::string name, const Credentials& credentials, std::function<bool()> follows);

  PageAccess access_;
  const std::function<bool()> follows_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace muster::rendezvous

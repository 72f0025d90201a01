// What a daemon shows over HTTP (musterd --http): its jobs, as JSON, and figures, as metrics.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "absl/status/statusor.h"
#include "rendezvous/fronts/change_feed.h"
#include "rendezvous/fronts/permissions.h"
#include "rendezvous/http/http_server.h"
#include "rendezvous/identity/keyring.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/net/endpoint.h"
#include "rendezvous/pages/loop_turns.h"
#include "rendezvous/server.h"

namespace muster::rendezvous {

// Answers
//   GET /healthz             200, to whoever asks, as the loop goes round
//   GET /readyz              200, to whoever asks; 503 once the daemon takes no new nodes. Also
//   while
//                            tenants are not open: those who are need it, and must not be kept
//                            away for one whose journal is damaged
//   GET /metrics             for Prometheus
//   GET /                    a page, to whoever asks; what it shows it has from the last of these
//   GET /api/v1/jobs         an array of jobs (job_json.h)
//   GET /api/v1/jobs/RUN_ID  one of them, or 404
//   GET /api/v1/jobs/RUN_ID/logs?rank=R  the last lines of a rank (log_page.h)
//   GET /api/v1/events       that array now, and again when something has changed (server-sent
//                            events), at most four times a second and at least every ten seconds;
//                            while ranks tell of their steps every second, if it is short
// While what is remembered of a tenant is not open his metrics say that alone, and everything else
// is answered 503 and why.
// Metrics and jobs take `Authorization: Bearer TOKEN`, where TOKEN is what a token file holds: the
// daemon's, a tenant's, or the one that `muster token metrics` makes of it, with which nothing else
// can be done, and no logs be read. A tenant is shown his own jobs. A token that is changed or
// taken away is refused a second later, and its streams end within ten. Without a token
// (--insecure) anybody is answered who asks for an address, for this machine's name or for the name
// that was listened on: a page of another site, whose name its owner lets mean this machine (DNS
// rebinding), asks for that name. Lives on the loop's thread.
class DaemonPages final : private ChangeFeed::Publisher {
 public:
  // As HttpServer::Open. `server` must outlive it, and so must `turns`: how long the loop's
  // handlers take; null: nobody measures that.
  static absl::StatusOr<std::unique_ptr<DaemonPages>> Open(boost::asio::io_context& io,
                                                           const Endpoint& endpoint,
                                                           const Credentials& credentials,
                                                           Server& server,
                                                           const LoopTurns* turns = nullptr);
  ~DaemonPages() override;
  DaemonPages(const DaemonPages&) = delete;
  DaemonPages& operator=(const DaemonPages&) = delete;

  std::uint16_t port() const { return http_->port(); }

  // What a request is answered; public for tests.
  HttpAnswer AnswerTo(const HttpRequest& request);

 private:
  DaemonPages(boost::asio::io_context& io, std::string name, const Credentials& credentials,
              Server& server, const LoopTurns* turns);

  // Of whose jobs the asker may know what this call tells; nullopt: nobody's.
  std::optional<std::string> TenantOf(const HttpRequest& request, Rpc rpc = Rpc::kList);
  HttpAnswer AnswerToLogs(const std::string& run_id, const HttpRequest& request,
                          const std::string& tenant);
  // Where no token is asked for: whether the request is for this machine by its own name.
  bool IsForUs(const HttpRequest& request) const;
  // As the files of tokens say, or said a second ago; null where nobody has a token.
  Keys KeysNow();
  // Why nothing can be said of the tenant's jobs, if so: as Server::DriverOf, which makes him be
  // opened, or Driver::Standing.
  absl::Status StandingOf(const std::string& tenant);
  std::vector<JobSnapshot> JobsOf(const std::string& tenant) const;
  std::string Metrics(const std::string& tenant) const;
  void Publish(const ChangeFeed::News& news) override;
  bool is_watched() const override;
  std::chrono::milliseconds pause() const override { return pause_; }
  void EndForeignStreams();

  boost::asio::io_context& io_;
  const Credentials credentials_;
  const std::string name_;  // that was listened on
  Server& server_;
  const LoopTurns* const turns_;
  const std::chrono::system_clock::time_point started_ = std::chrono::system_clock::now();
  // Until ranks that tell of their steps have told more.
  std::chrono::milliseconds pause_ = ChangeFeed::kAtLeast;
  // By which it was last found whose streams may go on.
  Keys streams_keys_;
  std::chrono::steady_clock::time_point look_after_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace muster::rendezvous

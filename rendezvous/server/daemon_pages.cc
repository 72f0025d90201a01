#include "rendezvous/server/daemon_pages.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "base/json.h"
#include "base/version.h"
#include "rendezvous/pages/job_view.h"
#include "rendezvous/pages/metrics.h"
#include "rendezvous/pages/page_answers.h"

namespace muster::rendezvous {
namespace {

constexpr absl::string_view kJobs = "/api/v1/jobs";
constexpr absl::string_view kEvents = "/api/v1/events";
constexpr absl::string_view kLogs = "/logs";

constexpr char kPageHtml[] =
#include "rendezvous/pages/page_html.inc"
    ;
constexpr char kPageCss[] =
#include "rendezvous/pages/page_css.inc"
    ;
constexpr char kPageJs[] =
#include "rendezvous/pages/page_js.inc"
    ;
constexpr char kRanksJs[] =
#include "rendezvous/pages/ranks_js.inc"
    ;

std::string Decoded(absl::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '%' && i + 2 < text.size() &&
                           absl::ascii_isxdigit(text[i + 1]) && absl::ascii_isxdigit(text[i + 2]);
    if (is_escape) {
      decoded += absl::HexStringToBytes(text.substr(i + 1, 2));
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

// The page may use only its own files and this daemon, and must not be framed by another page.
HttpAnswer Page(const char* type, const char* text) {
  HttpAnswer answer = ShownAnswer(type, text);
  answer.headers.emplace_back("Content-Security-Policy",
                              "default-src 'none'; script-src 'self'; style-src 'self'; "
                              "connect-src 'self'; base-uri 'none'; form-action 'none'; "
                              "frame-ancestors 'none'");
  answer.headers.emplace_back("Referrer-Policy", "no-referrer");
  return answer;
}

std::optional<HttpAnswer> PageFile(const std::string& path) {
  if (path == "/") return Page("text/html; charset=utf-8", kPageHtml);
  if (path == "/page.css") return Page("text/css; charset=utf-8", kPageCss);
  if (path == "/page.js") return Page("text/javascript; charset=utf-8", kPageJs);
  if (path == "/ranks.js") return Page("text/javascript; charset=utf-8", kRanksJs);
  return std::nullopt;
}

bool AnyTells(const std::vector<JobSnapshot>& jobs) {
  return std::any_of(jobs.begin(), jobs.end(), AnyRankTells);
}

std::string EventOf(const std::vector<JobSnapshot>& jobs) {
  base::Json told = ToJson(jobs);
  for (std::size_t i = 0; i < jobs.size(); ++i) told[i]["shown"] = ViewJson(jobs[i]);
  return absl::StrCat("data: ", base::JsonText(told), "\n\n");
}

}  // namespace

absl::StatusOr<std::unique_ptr<DaemonPages>> DaemonPages::Open(boost::asio::io_context& io,
                                                               const Endpoint& endpoint,
                                                               const Credentials& credentials,
                                                               Server& server,
                                                               const LoopTurns* turns) {
  std::unique_ptr<DaemonPages> pages(
      new DaemonPages(io, endpoint.host, credentials, server, turns));
  auto http = HttpServer::Open(
      io, endpoint, "--http",
      [pages = pages.get()](const HttpRequest& request) { return pages->AnswerTo(request); });
  if (!http.ok()) return http.status();
  pages->http_ = *std::move(http);
  return pages;
}

DaemonPages::DaemonPages(boost::asio::io_context& io, std::string name,
                         const Credentials& credentials, Server& server, const LoopTurns* turns)
    : io_(io), access_(std::move(name), credentials), server_(server), turns_(turns) {
  server_.changes().Add(*this);
}

DaemonPages::~DaemonPages() {
  server_.changes().Remove(*this);
}

void DaemonPages::Publish(const ChangeFeed::News& news) {
  // A call may arrive while the pages are being opened.
  if (http_ == nullptr) return;
  EndForeignStreams();
  bool any_tells = false;
  std::size_t bytes = 0;
  for (const std::string& tenant : http_->Topics()) {
    if (!StandingOf(tenant).ok()) continue;
    const std::vector<JobSnapshot> jobs = JobsOf(tenant);
    any_tells |= AnyTells(jobs);
    if (!news.empty() && news.count(tenant) == 0) continue;
    const auto event = std::make_shared<const std::string>(EventOf(jobs));
    bytes += event->size();
    http_->Publish(tenant, event);
  }
  pause_ = ChangeFeed::PauseAfter(any_tells, bytes);
}

// A token may have been changed or removed since.
void DaemonPages::EndForeignStreams() {
  Keys keys = access_.KeysNow();
  if (std::exchange(streams_keys_, keys) == keys) return;
  http_->EndStreams([this](const HttpRequest& asked, const std::string& tenant) {
    return access_.TenantOf(asked) == tenant;
  });
}

absl::Status DaemonPages::StandingOf(const std::string& tenant) {
  const absl::StatusOr<DaemonLoop*> daemon_loop = server_.LoopOf(tenant);
  return daemon_loop.ok() ? (*daemon_loop)->Standing() : daemon_loop.status();
}

std::vector<JobSnapshot> DaemonPages::JobsOf(const std::string& tenant) const {
  const DaemonLoop* const daemon_loop = server_.FindLoop(tenant);
  if (daemon_loop == nullptr) return {};
  // A daemon that may have been replaced as leader shows nothing (AnswerTo, Publish).
  return daemon_loop->List().value_or(std::vector<JobSnapshot>());
}

HttpAnswer DaemonPages::AnswerTo(const HttpRequest& request) {
  const std::string& path = request.path;
  if (std::optional<HttpAnswer> page = PageFile(path)) return *std::move(page);
  if (path == "/healthz") return PlainAnswer(200, "ok\n");
  if (path == "/readyz")
    return server_.drains() ? PlainAnswer(503, "drains\n") : PlainAnswer(200, "ok\n");
  const bool one_job = absl::StartsWith(path, absl::StrCat(kJobs, "/"));
  if (path != "/metrics" && path != kJobs && path != kEvents && !one_job) {
    return FailedAnswer(404, "no such page; the pages are /, /metrics and /api/v1/jobs");
  }
  if (std::optional<HttpAnswer> refusal = access_.Refusal(request)) return *std::move(refusal);
  const std::optional<std::string> tenant = access_.TenantOf(request);
  if (const absl::Status standing = StandingOf(*tenant); !standing.ok()) {
    if (path == "/metrics" && server_.FindLoop(*tenant) == nullptr)
      return MetricsAnswer(Metrics(*tenant));
    return FailedAnswer(503, std::string(standing.message()));
  }
  if (path == "/metrics") return MetricsAnswer(Metrics(*tenant));
  if (path == kEvents) {
    const std::vector<JobSnapshot> jobs = JobsOf(*tenant);
    HttpAnswer answer = ShownAnswer("text/event-stream", EventOf(jobs));
    answer.is_stream = true;
    answer.topic = *tenant;
    pause_ = std::min(pause_, ChangeFeed::PauseAfter(AnyTells(jobs), 0));
    server_.changes().Begin();
    return answer;
  }
  if (!one_job) return JsonAnswer(ToJson(JobsOf(*tenant)));
  absl::string_view name = absl::string_view(path).substr(kJobs.size() + 1);
  const bool logs = absl::ConsumeSuffix(&name, kLogs);
  // Browsers and curl resolve "." and ".." in a path, but not "..;".
  absl::ConsumeSuffix(&name, ";");
  const std::string run_id = Decoded(name);
  if (logs) return AnswerToLogs(run_id, request, *tenant);
  if (const auto job = server_.FindLoop(*tenant)->Describe(run_id); job.ok()) {
    return JsonAnswer(ToJson(*job));
  }
  return FailedAnswer(404, absl::StrCat("there is no job '", run_id, "'"));
}

HttpAnswer DaemonPages::AnswerToLogs(const std::string& run_id, const HttpRequest& request,
                                     const std::string& tenant) {
  if (!access_.TenantOf(request, Rpc::kReadLog)) {
    return FailedAnswer(403,
                        "this token gives access to jobs but not to their output, which needs the "
                        "token they were started with");
  }
  const auto asked = ParseLogQuery(run_id, request.query);
  if (!asked.ok()) return FailedAnswer(400, std::string(asked.status().message()));
  HttpAnswer answer = AnswerWithLog(io_, server_.FindLoop(tenant)->logs(), *asked);
  // The node may take seconds, and the token may be invalid by then.
  answer.later = [this, request, tenant, later = std::move(answer.later)](HttpAnswer::Reply reply) {
    return later([this, request, tenant, reply = std::move(reply)](HttpAnswer told) {
      reply(access_.TenantOf(request, Rpc::kReadLog) == tenant
                ? std::move(told)
                : FailedAnswer(401, "this token is no longer valid"));
    });
  };
  return answer;
}

std::string DaemonPages::Metrics(const std::string& tenant) const {
  Exposition out;
  out.Gauge("muster_build_info", "1, with the version of this musterd.");
  out.Sample(1, {{"version", base::kVersion}});
  const DaemonLoop* const daemon_loop = server_.FindLoop(tenant);
  out.Gauge("muster_tenant_open",
            "1; 0 while the requesting tenant's state is being opened, or cannot be.");
  out.Sample(daemon_loop == nullptr ? 0 : 1);
  // The tenant's jobs are unknown, which is different from having none, so say nothing.
  if (daemon_loop == nullptr) return out.Take();
  const std::vector<JobSnapshot> jobs = JobsOf(tenant);
  server_.FindFigures(tenant)->Write(jobs, out);
  WriteRankFigures(jobs, out);
  WriteKeptFigures(daemon_loop, out);
  // Metrics of the daemon itself, not of one of several tenants.
  if (tenant.empty()) WriteProcessFigures(server_, turns_, started_, out);
  return out.Take();
}

void WriteStandbyFigures(bool follows, Exposition& out) {
  out.Gauge("muster_standby_follows", "Standby: 1 while it has all state and could lead.");
  out.Sample(follows ? 1 : 0);
}

absl::StatusOr<std::unique_ptr<StandbyPages>> StandbyPages::Open(boost::asio::io_context& io,
                                                                 const Endpoint& endpoint,
                                                                 const Credentials& credentials,
                                                                 std::function<bool()> follows) {
  std::unique_ptr<StandbyPages> pages(
      new StandbyPages(endpoint.host, credentials, std::move(follows)));
  auto http = HttpServer::Open(
      io, endpoint, "--http",
      [pages = pages.get()](const HttpRequest& request) { return pages->AnswerTo(request); });
  if (!http.ok()) return http.status();
  pages->http_ = *std::move(http);
  return pages;
}

StandbyPages::StandbyPages(std::string name, const Credentials& credentials,
                           std::function<bool()> follows)
    : access_(std::move(name), credentials), follows_(std::move(follows)) {}

HttpAnswer StandbyPages::AnswerTo(const HttpRequest& request) {
  if (request.path == "/healthz") return PlainAnswer(200, "ok\n");
  if (request.path == "/readyz") return PlainAnswer(503, "stands by\n");
  if (request.path != "/metrics") {
    return FailedAnswer(503, "this daemon is a standby; ask the leader");
  }
  if (std::optional<HttpAnswer> refusal = access_.Refusal(request)) return *std::move(refusal);
  Exposition out;
  out.Gauge("muster_build_info", "1, with the version of this musterd.");
  out.Sample(1, {{"version", base::kVersion}});
  WriteStandbyFigures(follows_(), out);
  return MetricsAnswer(out.Take());
}

}  // namespace muster::rendezvous

#include "rendezvous/pages/daemon_pages.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/host_name.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/json.h"
#include "base/version.h"
#include "rendezvous/pages/daemon_figures.h"
#include "rendezvous/pages/exposition.h"
#include "rendezvous/pages/job_figures.h"
#include "rendezvous/pages/job_json.h"
#include "rendezvous/pages/log_page.h"
#include "rendezvous/pages/rank_figures.h"

namespace muster::rendezvous {
namespace {

constexpr absl::string_view kJobs = "/api/v1/jobs";
constexpr absl::string_view kEvents = "/api/v1/events";
constexpr absl::string_view kLogs = "/logs";

// Token files are looked at no more often, however many ask.
constexpr std::chrono::seconds kLookPause(1);

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

HttpAnswer Plain(int status, const char* text) {
  return {.status = status, .body = text, .headers = {}};
}

// What is shown is of this moment, and is what its type says.
HttpAnswer Shown(const char* type, std::string body, int status = 200) {
  return {.status = status,
          .type = type,
          .body = std::move(body),
          .headers = {{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}}};
}

HttpAnswer AsJson(const base::Json& json, int status = 200) {
  return Shown("application/json", base::JsonText(json, /*indent=*/2) + "\n", status);
}

HttpAnswer AsMetrics(std::string text) {
  return Shown("text/plain; version=0.0.4", std::move(text));
}

HttpAnswer Failed(int status, const std::string& sentence) {
  return AsJson({{"error", sentence}}, status);
}

// The page's own files and this daemon are all that it may use, and nobody may put it into a frame.
HttpAnswer Page(const char* type, const char* text) {
  HttpAnswer answer = Shown(type, text);
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
  return absl::StrCat("data: ", base::JsonText(ToJson(jobs)), "\n\n");
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
    : io_(io), credentials_(credentials), name_(std::move(name)), server_(server), turns_(turns) {
  server_.changes().Add(*this);
}

DaemonPages::~DaemonPages() {
  server_.changes().Remove(*this);
}

void DaemonPages::Publish(const ChangeFeed::News& news) {
  // It may come while the pages are opened.
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

bool DaemonPages::is_watched() const {
  return http_ != nullptr && !http_->Topics().empty();
}

// A token may have been changed or taken away since.
void DaemonPages::EndForeignStreams() {
  Keys keys = KeysNow();
  if (std::exchange(streams_keys_, keys) == keys) return;
  http_->EndStreams([this](const HttpRequest& asked, const std::string& tenant) {
    return TenantOf(asked) == tenant;
  });
}

Keys DaemonPages::KeysNow() {
  const auto now = std::chrono::steady_clock::now();
  if (now < look_after_) return credentials_.keys();
  look_after_ = now + kLookPause;
  return credentials_.RereadKeys();
}

absl::Status DaemonPages::StandingOf(const std::string& tenant) {
  const absl::StatusOr<Driver*> driver = server_.DriverOf(tenant);
  return driver.ok() ? (*driver)->Standing() : driver.status();
}

std::vector<JobSnapshot> DaemonPages::JobsOf(const std::string& tenant) const {
  const Driver* const driver = server_.FindDriver(tenant);
  if (driver == nullptr) return {};
  // Who may have been followed shows nothing (AnswerTo, Publish).
  return driver->List().value_or(std::vector<JobSnapshot>());
}

HttpAnswer DaemonPages::AnswerTo(const HttpRequest& request) {
  const std::string& path = request.path;
  if (std::optional<HttpAnswer> page = PageFile(path)) return *std::move(page);
  if (path == "/healthz") return Plain(200, "ok\n");
  if (path == "/readyz") return server_.drains() ? Plain(503, "drains\n") : Plain(200, "ok\n");
  const bool one_job = absl::StartsWith(path, absl::StrCat(kJobs, "/"));
  if (path != "/metrics" && path != kJobs && path != kEvents && !one_job) {
    return Failed(404, "there is no such page; /, /metrics and /api/v1/jobs are there");
  }
  if (!IsForUs(request)) {
    return Failed(403, absl::StrCat("this daemon has no token, and answers who asks for it by its "
                                    "address or its own name, not by '",
                                    request.host, "'"));
  }
  const std::optional<std::string> tenant = TenantOf(request);
  if (!tenant) {
    HttpAnswer answer = Failed(401,
                               "a token is needed: Authorization: Bearer with what `muster token "
                               "metrics` makes of the daemon's");
    answer.headers.emplace_back("WWW-Authenticate", "Bearer");
    return answer;
  }
  if (const absl::Status standing = StandingOf(*tenant); !standing.ok()) {
    if (path == "/metrics" && server_.FindDriver(*tenant) == nullptr)
      return AsMetrics(Metrics(*tenant));
    return Failed(503, std::string(standing.message()));
  }
  if (path == "/metrics") return AsMetrics(Metrics(*tenant));
  if (path == kEvents) {
    const std::vector<JobSnapshot> jobs = JobsOf(*tenant);
    HttpAnswer answer = Shown("text/event-stream", EventOf(jobs));
    answer.is_stream = true;
    answer.topic = *tenant;
    pause_ = std::min(pause_, ChangeFeed::PauseAfter(AnyTells(jobs), 0));
    server_.changes().Begin();
    return answer;
  }
  if (!one_job) return AsJson(ToJson(JobsOf(*tenant)));
  const absl::string_view name = absl::string_view(path).substr(kJobs.size() + 1);
  if (absl::EndsWith(name, kLogs)) {
    return AnswerToLogs(Decoded(name.substr(0, name.size() - kLogs.size())), request, *tenant);
  }
  const std::string run_id = Decoded(name);
  if (const auto job = server_.FindDriver(*tenant)->Describe(run_id); job.ok()) {
    return AsJson(ToJson(*job));
  }
  return Failed(404, absl::StrCat("there is no job '", run_id, "'"));
}

bool DaemonPages::IsForUs(const HttpRequest& request) const {
  if (credentials_.proof() != Credentials::Proof::kNone || request.host.empty()) return true;
  absl::string_view host = request.host;
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  boost::system::error_code is_name;
  boost::asio::ip::make_address(std::string(host), is_name);
  if (!is_name || absl::EqualsIgnoreCase(host, "localhost")) return true;
  const std::string own = boost::asio::ip::host_name(is_name);
  // And not what begins with it: "node0" can be guessed, and node0.example.org be anybody's.
  return absl::EqualsIgnoreCase(host, own) || absl::EqualsIgnoreCase(host, name_);
}

HttpAnswer DaemonPages::AnswerToLogs(const std::string& run_id, const HttpRequest& request,
                                     const std::string& tenant) {
  if (!TenantOf(request, Rpc::kReadLog)) {
    return Failed(403,
                  "this token shows jobs and not what their workers print, for which it takes the "
                  "one that they were started with");
  }
  const auto asked = ParseLogQuery(run_id, request.query);
  if (!asked.ok()) return Failed(400, std::string(asked.status().message()));
  return AnswerWithLog(io_, server_.FindDriver(tenant)->logs(), *asked);
}

std::optional<std::string> DaemonPages::TenantOf(const HttpRequest& request, Rpc rpc) {
  if (credentials_.proof() == Credentials::Proof::kNone) return "";
  const Keys keys = KeysNow();
  const auto token = Token::Parse(request.bearer);
  if (keys == nullptr || !token.ok()) return std::nullopt;
  const auto who = Keyring::Identify(*keys, *token);
  if (!who || !IsAllowed(who->role, rpc)) return std::nullopt;
  return who->tenant;
}

std::string DaemonPages::Metrics(const std::string& tenant) const {
  Exposition out;
  out.Gauge("muster_build_info", "1, with the version of this musterd.");
  out.Sample(1, {{"version", base::kVersion}});
  const Driver* const driver = server_.FindDriver(tenant);
  out.Gauge("muster_tenant_open",
            "1; 0 while what is remembered of the tenant who asks is being opened, or cannot be.");
  out.Sample(driver == nullptr ? 0 : 1);
  // Nothing is known of his jobs, and nothing is said: they are not none.
  if (driver == nullptr) return out.Take();
  const std::vector<JobSnapshot> jobs = JobsOf(tenant);
  server_.FindFigures(tenant)->Write(jobs, out);
  WriteRankFigures(jobs, out);
  WriteKeptFigures(driver, out);
  // What is of the daemon and not of one of several tenants.
  if (tenant.empty()) WriteProcessFigures(server_, turns_, started_, out);
  return out.Take();
}

}  // namespace muster::rendezvous

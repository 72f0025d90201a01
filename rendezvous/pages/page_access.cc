#include "rendezvous/pages/page_access.h"

#include <utility>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/host_name.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "base/safe_text.h"
#include "rendezvous/identity/token.h"

namespace muster::rendezvous {
namespace {

// Token files are looked at no more often, however many ask.
constexpr std::chrono::seconds kLookPause(1);

}  // namespace

PageAccess::PageAccess(std::string name, const Credentials& credentials)
    : name_(std::move(name)), credentials_(credentials) {}

std::optional<HttpAnswer> PageAccess::Refusal(const HttpRequest& request) {
  if (!IsForUs(request)) {
    return FailedAnswer(403, absl::StrCat("this daemon has no token, and answers only requests for "
                                          "its address or its own name, not for '",
                                          request.host, "'"));
  }
  if (TenantOf(request)) return std::nullopt;
  HttpAnswer answer = FailedAnswer(401,
                                   "a token is needed: Authorization: Bearer with the one that "
                                   "`muster token metrics` derives from the daemon's");
  answer.headers.emplace_back("WWW-Authenticate", "Bearer");
  return answer;
}

bool PageAccess::IsForUs(const HttpRequest& request) const {
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

std::optional<std::string> PageAccess::TenantOf(const HttpRequest& request, Rpc rpc) {
  if (credentials_.proof() == Credentials::Proof::kNone) return "";
  const Keys keys = KeysNow();
  const auto token = Token::Parse(request.bearer);
  if (keys == nullptr || !token.ok()) return std::nullopt;
  const auto who = Keyring::Identify(*keys, *token);
  if (!who || !IsAllowed(who->role, rpc)) return std::nullopt;
  return who->tenant;
}

Keys PageAccess::KeysNow() {
  const auto now = std::chrono::steady_clock::now();
  if (now < look_after_) return credentials_.keys();
  look_after_ = now + kLookPause;
  return credentials_.RereadKeys();
}

HttpAnswer PlainAnswer(int status, const char* text) {
  return {.status = status, .body = text, .headers = {}};
}

HttpAnswer ShownAnswer(const char* type, std::string body, int status) {
  return {.status = status,
          .type = type,
          .body = std::move(body),
          .headers = {{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}}};
}

HttpAnswer JsonAnswer(const base::Json& json, int status) {
  return ShownAnswer("application/json", base::SafeJson(base::JsonText(json, /*indent=*/2)) + "\n",
                     status);
}

HttpAnswer MetricsAnswer(std::string text) {
  return ShownAnswer("text/plain; version=0.0.4", std::move(text));
}

HttpAnswer FailedAnswer(int status, const std::string& sentence) {
  return JsonAnswer({{"error", sentence}}, status);
}

}  // namespace muster::rendezvous

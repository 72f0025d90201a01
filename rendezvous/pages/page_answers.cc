#include "rendezvous/pages/page_answers.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/host_name.hpp>
#include <boost/asio/post.hpp>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "base/async/timer.h"
#include "base/lifetime.h"
#include "base/safe_text.h"
#include "rendezvous/core/values/phrases.h"
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

namespace {

constexpr int kUsualTail = 100;
constexpr int kMostTail = 1000;

// Less than an HTTP connection waits.
constexpr std::chrono::seconds kExcerptPatience(4);

// Reads the last lines of a rank, for who asks once: what `request` asks for, which must not be to
// be followed, to its end, to kMostBytes, or for kExcerptPatience. Lives on the loop's thread; `io`
// and `logs` must outlive it. Nothing is called any more once it is destroyed.
class LogExcerpt {
 public:
  static constexpr std::size_t kMostBytes = 256 * 1024;

  struct Result {
    // Why nothing could be read at all; OK also where something is missing, as `notices` say then.
    absl::Status status;
    std::optional<RoundNumber> round{};
    std::string text{};
    std::vector<std::string> notices{};
  };

  // `done` is called once, from the loop; it may destroy this.
  LogExcerpt(boost::asio::io_context& io, LogExchange& logs, LogRequest request,
             std::function<void(Result)> done)
      : io_(io), logs_(logs), done_(std::move(done)), limit_(io) {
    limit_.After(kExcerptPatience, [this] {
      result_.notices.push_back("some output did not arrive in time");
      End(absl::OkStatus());
    });
    reader_ = logs_.OpenReader(std::move(request),
                               {.on_part = [this](const LogPart& part) { Take(part); },
                                .on_end = [this](const absl::Status& status) { End(status); }});
  }
  // No effect when it has ended.
  ~LogExcerpt() { logs_.CloseReader(reader_); }
  LogExcerpt(const LogExcerpt&) = delete;
  LogExcerpt& operator=(const LogExcerpt&) = delete;

 private:
  void Take(const LogPart& part) {
    if (const auto* text = std::get_if<LogText>(&part)) result_.text += text->bytes;
    if (const auto* notice = std::get_if<LogNotice>(&part)) {
      result_.notices.push_back(notice->sentence);
    }
    if (const auto* round = std::get_if<LogRound>(&part)) result_.round = round->round;
    // From the loop: the reader may not have its number yet.
    boost::asio::post(io_, lifetime_.Guard([this] {
      if (over_) return;
      if (result_.text.size() < kMostBytes) return logs_.Took(reader_);
      result_.notices.push_back("more output is not shown");
      End(absl::OkStatus());
    }));
  }

  void End(const absl::Status& status) {
    if (std::exchange(over_, true)) return;
    limit_.Cancel();
    // What is missing was told.
    if (!absl::IsDataLoss(status)) result_.status = status;
    boost::asio::post(io_, lifetime_.Guard([this] {
      logs_.CloseReader(reader_);
      const auto done = std::move(done_);
      done(std::move(result_));
    }));
  }

  boost::asio::io_context& io_;
  LogExchange& logs_;
  std::function<void(Result)> done_;
  Result result_;
  bool over_ = false;
  LogReaderId reader_ = 0;
  base::Timer limit_;
  const base::Lifetime lifetime_;
};

HttpAnswer LogAnswer(int status, const base::Json& json) {
  return ShownAnswer("application/json", base::JsonText(json, /*indent=*/2) + "\n", status);
}

// Of an error.
int StatusOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kFailedPrecondition:
      return 404;
    default:
      return 503;
  }
}

HttpAnswer AnswerOf(const LogExcerpt::Result& result) {
  if (!result.status.ok()) {
    return LogAnswer(StatusOf(result.status.code()),
                     {{"error", std::string(result.status.message())}});
  }
  // A progress bar prints nothing else for an hour.
  const std::string lines = absl::StrReplaceAll(result.text, {{"\r\n", "\n"}, {"\r", "\n"}});
  return LogAnswer(200, {{"round", result.round.value_or(kNoRound)},
                         {"text", Printable(lines, 2 * LogExcerpt::kMostBytes)},
                         {"notices", result.notices}});
}

}  // namespace

absl::StatusOr<LogRequest> ParseLogQuery(const std::string& run_id, absl::string_view query) {
  LogRequest request{.run_id = run_id, .extent = {.tail = kUsualTail}};
  for (const absl::string_view part : absl::StrSplit(query, '&', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    int number = 0;
    if (!absl::SimpleAtoi(pair.second, &number) || number < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(pair.first, " is not a number; write ?rank=R&tail=LINES&round=N"));
    }
    if (pair.first == "rank") {
      request.ranks = {{number, number}};
    } else if (pair.first == "tail") {
      request.extent.tail = std::min(number, kMostTail);
    } else if (pair.first == "round") {
      request.round = number;
    } else {
      return absl::InvalidArgumentError(absl::StrCat("unknown parameter ", pair.first,
                                                     "; the parameters are rank, tail and round"));
    }
  }
  if (request.ranks.empty()) return absl::InvalidArgumentError("no rank is named; write ?rank=R");
  return request;
}

HttpAnswer AnswerWithLog(boost::asio::io_context& io, LogExchange& logs, LogRequest request) {
  HttpAnswer answer{.headers = {}};
  answer.later = [&io, &logs, request = std::move(request)](HttpAnswer::Reply reply) {
    return std::make_shared<LogExcerpt>(
        io, logs, request,
        [reply = std::move(reply)](const LogExcerpt::Result& result) { reply(AnswerOf(result)); });
  };
  return answer;
}

}  // namespace muster::rendezvous

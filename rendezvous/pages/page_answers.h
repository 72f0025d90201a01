// What a daemon answers over HTTP: to whom it shows what, and how logs are asked for.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "base/json.h"
#include "rendezvous/core/values/log_request.h"
#include "rendezvous/fronts/permissions.h"
#include "rendezvous/fronts/subscriptions.h"
#include "rendezvous/identity/keyring.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/net/http_server.h"

namespace muster::rendezvous {

// Who is shown what of a daemon.

// Lives on the loop's thread.
class PageAccess {
 public:
  // `name` is the one that was listened on.
  PageAccess(std::string name, const Credentials& credentials);

  // Of whose jobs the asker may know what this call tells; nullopt: nobody's.
  std::optional<std::string> TenantOf(const HttpRequest& request, Rpc rpc = Rpc::kList);
  // As the files of tokens say, or said a second ago; null where nobody has a token.
  Keys KeysNow();

  // What is answered to whoever may know nothing; nullopt: this one may know something.
  std::optional<HttpAnswer> Refusal(const HttpRequest& request);

 private:
  // Where no token is asked for: whether the request is for this machine by its own name.
  bool IsForUs(const HttpRequest& request) const;

  const std::string name_;
  const Credentials credentials_;
  std::chrono::steady_clock::time_point look_after_;
};

// What the pages of a daemon have in common.

HttpAnswer PlainAnswer(int status, const char* text);

// What is shown is of this moment, and is what its type says.
HttpAnswer ShownAnswer(const char* type, std::string body, int status = 200);

HttpAnswer JsonAnswer(const base::Json& json, int status = 200);
HttpAnswer MetricsAnswer(std::string text);

// Why there is nothing to be shown.
HttpAnswer FailedAnswer(int status, const std::string& sentence);

// How logs are asked for, and answered.

// "rank=3&tail=50&round=1": a rank, which must be there; lines of each of its streams, 100 unless
// it is said, and 1,000 at most; a round, the last one unless it is said. An error says what is
// wrong.
absl::StatusOr<LogRequest> ParseLogQuery(const std::string& run_id, absl::string_view query);

// Reads it, and answers with
//   {"round": 1, "text": "...", "notices": ["..."]}
// where `text` is what there is of the rank's stdout and then of its stderr, at most 256 KiB, as
// UTF-8 without control characters; or with {"error": "..."}. `io` and `logs` must outlive it.
HttpAnswer AnswerWithLog(boost::asio::io_context& io, LogExchange& logs, LogRequest request);

}  // namespace muster::rendezvous

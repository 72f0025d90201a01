// Who is shown what of a daemon over HTTP.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/json.h"
#include "rendezvous/fronts/permissions.h"
#include "rendezvous/identity/keyring.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/net/http_server.h"

namespace muster::rendezvous {

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

}  // namespace muster::rendezvous

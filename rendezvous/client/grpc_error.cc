#include "rendezvous/client/grpc_error.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/phrases.h"
#include "rendezvous/wire/printable.h"

namespace muster::rendezvous {
namespace {

// What has gone wrong between two ends of which one asks for another proof than the other gives
// (wire/wrong_door.h); trying again would not help.
void ReadTlsTrouble(ConnectionError& error, Credentials::Proof proof) {
  using Kind = ConnectionError::Kind;
  const auto says = [&error](const char* words) {
    return error.cause.find(words) != std::string::npos;
  };
  if (proof == Credentials::Proof::kSite && says("certificate verify failed")) {
    error = {.cause = "its certificate has expired, or no authority in --tls-ca answers for it",
             .kind = Kind::kForeign};
  } else if (proof == Credentials::Proof::kSite && says("is not in peer certificate")) {
    error = {.cause = "its certificate is for another name than the one that it was asked by",
             .kind = Kind::kForeign};
  } else if (says("certificate verify failed")) {
    error = {.cause =
                 "it was started with another token than the one here, or the clocks of the "
                 "two machines differ by hours",
             .kind = Kind::kForeign};
  } else if (says("alert insufficient security") || says("wrong version number")) {
    error = {.cause =
                 "it was started without a token; start it with the one here, or go without "
                 "as well (--insecure)",
             .kind = Kind::kForeign};
  } else if (says("http1.x server")) {
    error = {.cause = "it asks for the token that it was started with", .kind = Kind::kForeign};
  } else if (const std::size_t at = error.cause.find("Ssl handshake failed: ");
             at != std::string::npos) {
    error.cause =
        absl::StrCat("no secure connection could be made (", error.cause.substr(at + 22), ")");
  }
}

std::string WhyUnavailable(const ConnectionError& error) {
  return error.kind == ConnectionError::Kind::kRefused
             ? absl::StrCat("nothing is listening there (", error.cause, ")")
             : error.cause;
}

}  // namespace

// What gRPC wraps around the cause is for those who debug gRPC: "failed to connect to all
// addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to connect to remote host: Connection
// refused".
ConnectionError ReadConnectionError(const grpc::Status& status, Credentials::Proof proof) {
  using Kind = ConnectionError::Kind;
  ConnectionError error{.cause = status.error_message()};
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return {.cause = "what answers there is not a Muster rendezvous", .kind = Kind::kForeign};
  }
  // Who has been let in by his token may still have no right to what he asks for.
  if (status.error_code() == grpc::StatusCode::PERMISSION_DENIED) {
    return {.cause = OneLine(error.cause, kMaxDaemonSentence), .kind = Kind::kForeign};
  }
  if (error.cause.starts_with("DNS resolution failed")) {
    error.kind = Kind::kUnresolved;
    error.cause =
        absl::StrCat("its name does not resolve", error.cause.substr(error.cause.rfind(": ")));
    return error;
  }
  for (const char* wrapping : {"last error: ", "UNKNOWN: ", "UNAVAILABLE: ",
                               "Failed to connect to remote host: ", "recvmsg:", "sendmsg:"}) {
    if (const std::size_t at = error.cause.find(wrapping); at != std::string::npos) {
      error.cause = error.cause.substr(at + std::char_traits<char>::length(wrapping));
    }
  }
  if (error.cause.find("Connection refused") != std::string::npos) error.kind = Kind::kRefused;
  ReadTlsTrouble(error, proof);
  // The kernel takes connections for a process that is stopped, or too busy to.
  if (error.cause.find("before receiving SETTINGS frame") != std::string::npos) {
    error.cause = "it takes connections and does not answer";
  }
  if (error.cause.empty()) error.cause = "the connection ended";
  return error;
}

absl::Status ExplainFailure(const grpc::Status& status, const DaemonOptions& daemon) {
  const std::string where = absl::StrCat(ToString(daemon.endpoint), ": ");
  switch (status.error_code()) {
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return absl::UnavailableError(
          absl::StrCat(where, "no answer within ", base::Seconds(daemon.patience)));
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::UNIMPLEMENTED:
      return absl::UnavailableError(absl::StrCat(
          where, WhyUnavailable(ReadConnectionError(status, daemon.credentials.proof()))));
    default:
      return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                          absl::StrCat(where, OneLine(status.error_message(), kMaxDaemonSentence)));
  }
}

}  // namespace muster::rendezvous

#include "rendezvous/client/connection_error.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace muster::rendezvous {

// What gRPC wraps around the cause is for those who debug gRPC: "failed to connect to all
// addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to connect to remote host: Connection
// refused".
ConnectionError ReadConnectionError(const grpc::Status& status) {
  ConnectionError error{.cause = status.error_message()};
  if (error.cause.starts_with("DNS resolution failed")) {
    error.unresolved = true;
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
  error.refused = error.cause.find("Connection refused") != std::string::npos;
  if (error.cause.empty()) error.cause = "the connection ended";
  return error;
}

}  // namespace muster::rendezvous

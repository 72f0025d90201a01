// A gRPC client of a job's store that records what it did and saw.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rendezvous/net/credentials.h"
#include "test/linearizability/store_history.h"

namespace muster::linearizability {

// Makes one call at a time, on one thread, over its own connection.
class StoreClient {
 public:
  // Connects to `port` of 127.0.0.1 on the first call, and again when the connection is lost.
  StoreClient(int number, std::uint16_t port, const rendezvous::Credentials& credentials,
              std::string run_id);
  ~StoreClient();

  // Blocks until there is an answer or `patience` has passed, even if nothing listens at the port.
  // No answer is an unknown outcome. An error is an answer that such a call should never get ("no
  // job 'x' here"); nothing was done then.
  absl::StatusOr<StoreOperation> Do(const StoreCall& call, std::chrono::milliseconds patience);

 private:
  class Connection;

  const int number_;
  const std::unique_ptr<Connection> connection_;
};

}  // namespace muster::linearizability

// A client of a job's store over gRPC that writes down what it did and saw.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "test/linearizability/store_history.h"

namespace muster::linearizability {

// One call at a time, on one thread, over a connection of its own.
class StoreClient {
 public:
  // Connects to a port of 127.0.0.1 when it has something to ask, and again when the connection is
  // lost.
  StoreClient(int number, std::uint16_t port, std::string run_id);
  ~StoreClient();

  // Blocks until there is an answer or `patience` is over, also while nobody listens there. No
  // answer is an unknown outcome. An error is an answer that no call of this kind may get ("no job
  // 'x' here"): nothing was done.
  absl::StatusOr<StoreOperation> Do(const StoreCall& call, std::chrono::milliseconds patience);

 private:
  class Connection;

  const int number_;
  const std::unique_ptr<Connection> connection_;
};

}  // namespace muster::linearizability

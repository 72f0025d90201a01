// A gRPC client of a job's store that records what it did and saw.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rendezvous/net/credentials.h"
#include "test/linearizability/store_history.h"

namespace muster::linearizability {

// Where a job's store is, and which part of it a history is about.
struct StorePlace {
  // HOST:PORT with an IPv4 address each: of daemons of which one serves at a time.
  std::vector<std::string> daemons;
  rendezvous::Credentials credentials;
  std::string run_id;
  // Before each key on the wire, and not in the history.
  std::string prefix{};
};

// Makes one call at a time, on one thread, over its own connection.
class StoreClient {
 public:
  // Connects to the first daemon on the first call, and again when the connection is lost.
  StoreClient(int number, StorePlace place);
  ~StoreClient();

  // With several daemons, before each call: goes from one to the next until it is connected, so
  // that a call which is made can have reached a daemon. False after `patience`.
  bool Connect(std::chrono::milliseconds patience);

  // Blocks until there is an answer or `patience` has passed, even if nothing listens at the port.
  // No answer is an unknown outcome. An error is an answer that such a call should never get ("no
  // job 'x' here"); nothing was done then.
  absl::StatusOr<StoreOperation> Do(const StoreCall& call, std::chrono::milliseconds patience);

 private:
  class Connection;

  const int number_;
  const StorePlace place_;
  std::size_t daemon_ = 0;  // of the place's
  std::unique_ptr<Connection> connection_;
};

}  // namespace muster::linearizability

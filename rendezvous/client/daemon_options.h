// Where to reach a daemon for a single query, and how long it may take.
#pragma once

#include <chrono>

#include "rendezvous/net/credentials.h"
#include "rendezvous/net/endpoint.h"

namespace muster::rendezvous {

struct DaemonOptions {
  Endpoint endpoint;
  Credentials credentials = Credentials::Plaintext();
  // For each answer, the connection included.
  std::chrono::milliseconds patience = std::chrono::seconds(10);
};

}  // namespace muster::rendezvous

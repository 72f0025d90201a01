// Whether a rendezvous can be reached from this machine, and answers it.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "launcher/doctor/connection.h"
#include "launcher/doctor/names.h"
#include "launcher/doctor/report.h"
#include "rendezvous/client/daemon_options.h"
#include "rendezvous/client/job_query.h"

namespace muster::launcher {

struct RendezvousReach {
  rendezvous::Endpoint endpoint;
  Resolved resolved;
  // It leads to loopback alone, though it is not written as a loopback address.
  bool leads_to_loopback = false;
  DialOutcome outcome = DialOutcome::kFailed;
  std::string dialled;  // the address that was tried last
  std::string cause;    // why there is no connection
  std::chrono::nanoseconds took{0};
  // Why the daemon does not answer, though there is a connection; empty: it does.
  std::string answer_trouble;
  // Its clock; nullopt: it does not say.
  std::optional<rendezvous::ClockReading> clock;
};

// Resolves, connects and asks a question that needs the token. Waits for `patience` of the options
// at most for each of these, and for DNS as long as the resolver does.
RendezvousReach ReachRendezvous(const rendezvous::DaemonOptions& daemon);

void Judge(const RendezvousReach& reach, Report& report);

}  // namespace muster::launcher

// What becomes known of a host, on its way up the launch tree.
#pragma once

#include <string>

namespace muster::launcher {

// A host's place in the job's list of hosts, from 0.
using HostIndex = int;

struct HostNews {
  enum class What {
    kAnswered,     // Muster runs there, for this job
    kNotYet,       // an attempt has failed; there will be another
    kUnreachable,  // given up, for now or, without MIN:MAX, for good
    kLost,         // it had answered, and the connection to it, or to what started it, is gone
    kEnded,        // its node has ended by itself, with `exit_code`
  };

  HostIndex host = 0;
  What what = What::kAnswered;
  // Why, for kNotYet, kUnreachable and kLost.
  std::string reason;
  int exit_code = 0;
  // With kAnswered: where others can reach a rendezvous that is served there.
  std::string endpoint;

  bool operator==(const HostNews&) const = default;
};

}  // namespace muster::launcher

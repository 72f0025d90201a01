// What --rdzv-conf says, in torchrun's words.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "launcher/cli/launch_config.h"

namespace muster::launcher {

struct RdzvConf {
  RendezvousTimeouts timeouts;
  // A join timeout was among the keys.
  bool join_given = false;
  // is_host: whether this node is the one that hosts the rendezvous.
  std::optional<bool> is_host;
  // Nothing but the daemon's own machine refuses connections to it.
  bool trust_refusals = false;

  bool operator==(const RdzvConf&) const = default;
};

// Reads "join_timeout=600,last_call_timeout=30"; the times are seconds above zero. The keys:
//
//   - join_timeout, or else timeout (which torchrun's c10d ignores, to its users' surprise)
//   - last_call_timeout
//   - lease_timeout or lease, or else keep_alive_interval (5) times keep_alive_max_attempt (3)
//   - keep_alive_interval, limited to a third of the lease
//   - connect_timeout, or else read_timeout
//   - reconnect_timeout, which torchrun does not have
//   - is_host: 1, true, t, yes or y; 0, false, f, no or n
//   - trust_refusals, which torchrun does not have; written like is_host. A refused connection then
//     proves that the daemon is dead, which is not true where a firewall or a proxy refuses in its
//     place
//   - store_type: tcp; torchrun's file is refused, as Muster has no such store
//
// Without any of its keys the lease has a default of its own. Other keys are ignored, as torchrun
// ignores them. Quotes around the whole text, which launch scripts leave there, are dropped. An
// error's message is a phrase that follows the text it is about.
absl::StatusOr<RdzvConf> ParseRdzvConf(absl::string_view text);

}  // namespace muster::launcher

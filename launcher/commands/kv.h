// The command line of `muster kv`.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

#include "base/cli/command.h"
#include "launcher/cli/rendezvous_args.h"

namespace muster::launcher {

// The verb, and what it needs. The operands are its keys in the end; of barrier its name, which is
// no key.
struct KvArgs : RendezvousArgs {
  // Of compare-set.
  std::string expected;
  // Of set, append and compare-set. nullopt: it is read from stdin.
  std::optional<std::string> value;
  // What add adds; or how many participants barrier waits for, at least 1.
  std::int64_t number = 1;
  // How long get, wait and barrier wait. nullopt: get does not wait, the others wait as long as the
  // job lives.
  std::optional<std::chrono::milliseconds> timeout;

  absl::Status Complete(base::Variables variables);
};

}  // namespace muster::launcher

// The command line of `muster kv`.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/environment.h"
#include "rendezvous/net/endpoint.h"
#include "rendezvous/net/token_source.h"

namespace muster::launcher {

struct KvCall {
  enum class Verb {
    kHelp,  // nothing below is set
    kGet,
    kSet,
    kAdd,
    kAppend,
    kCompareSet,
    kDelete,
    kCheck,
    kWait,
    kCount,
    kBarrier,
  };

  Verb verb = Verb::kHelp;
  rendezvous::Endpoint endpoint;
  rendezvous::TokenSource token;
  std::string run_id;
  // One key, except that kCheck and kWait may have more and kCount has none. Of kBarrier: its name,
  // which is no key.
  std::vector<std::string> keys;
  // Of kSet, kAppend and kCompareSet. nullopt: it is read from stdin.
  std::optional<std::string> value;
  // Of kCompareSet.
  std::string expected;
  // What kAdd adds; or how many participants kBarrier waits for, at least 1.
  std::int64_t number = 1;
  // How long kGet, kWait and kBarrier wait. nullopt: kGet does not wait, the others wait as long as
  // the job lives.
  std::optional<std::chrono::milliseconds> timeout;
};

// The text of `muster kv --help`.
std::string KvHelp();

// Reads the arguments after `kv`. An error's message is a sentence for the user.
absl::StatusOr<KvCall> ParseKvCall(const std::vector<std::string>& args,
                                   const Environment& environment);

}  // namespace muster::launcher

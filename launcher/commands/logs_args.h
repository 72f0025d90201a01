// The command line of `muster logs`.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "launcher/environment.h"
#include "rendezvous/core/log_request.h"
#include "rendezvous/net/endpoint.h"
#include "rendezvous/net/token_source.h"

namespace muster::launcher {

struct LogsArgs {
  // Nothing else is set.
  bool help = false;
  rendezvous::Endpoint endpoint;
  rendezvous::TokenSource token;
  rendezvous::LogRequest request;
  // One rank is asked for, whose lines need no prefix.
  bool one_rank = false;
};

// The text of `muster logs --help`.
std::string LogsHelp();

// Reads the arguments after `logs`; `now` and `zone` are for --since. An error's message is a
// sentence for the user.
absl::StatusOr<LogsArgs> ParseLogsArgs(const std::vector<std::string>& args,
                                       const Environment& environment, absl::Time now,
                                       absl::TimeZone zone);

// "3", "0-3,7": ranks, and from one to another.
absl::StatusOr<std::vector<rendezvous::RankRange>> ParseRankRanges(const std::string& text);

// How long ago that was: "90" or "90s", "10m", "1h30m", "2d"; "15:04" or "15:04:05", the last time
// that it was so late; "2026-11-25T15:04:05", in `zone` or with one of its own. Not in the future.
absl::StatusOr<absl::Duration> ParseSince(const std::string& text, absl::Time now,
                                          absl::TimeZone zone);

}  // namespace muster::launcher

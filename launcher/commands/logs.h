// The command line of `muster logs`.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "base/cli/command.h"
#include "launcher/cli/rendezvous_args.h"
#include "rendezvous/core/values/log_request.h"

namespace muster::launcher {

struct LogsArgs : RendezvousArgs {
  rendezvous::LogRequest request;
  // --stdout or --stderr was given.
  bool only_stdout = false;
  bool only_stderr = false;

  absl::Status Complete(base::Variables variables);
  // One rank is asked for, whose lines need no prefix.
  bool one_rank() const;
};

// "3", "0-3,7": ranks, and from one to another.
absl::StatusOr<std::vector<rendezvous::RankRange>> ParseRankRanges(absl::string_view text);

// How long ago that was: "90" or "90s", "10m", "1h30m", "2d"; "15:04" or "15:04:05", the last time
// that it was so late; "2026-11-25T15:04:05", in `zone` or with one of its own. Not in the future.
absl::StatusOr<absl::Duration> ParseSince(const std::string& text, absl::Time now,
                                          absl::TimeZone zone);

}  // namespace muster::launcher

// How users may spell a flag.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "launcher/flags/flag.h"

namespace muster::launcher {

// "PET_RDZV_ID" for "--rdzv-id", as torchrun has it; empty for a flag without a variable.
std::string EnvironmentVariable(const Flag& flag);

// The flags that `name` may stand for: the one it names exactly ("--rdzv-id", "--rdzv_id", "-r"),
// else all whose long name begins with it ("--rdzv" for five of them), as with Python's argparse.
// If only one of those is torchrun's, it is that one.
std::vector<const Flag*> MatchFlags(absl::string_view name);

// A short name at the start of `arg`, the longest that fits, and the flag it belongs to: "-r" of
// "-r3". Null if there is none.
struct ShortName {
  const Flag* flag = nullptr;
  absl::string_view name;
};
ShortName MatchShortName(absl::string_view arg);

// The long name most like `name`, for "did you mean": "--rdzv-endpoint" for "--rdvz_endpoint", and
// also for a name cut short, "--nproc-per-node" for "--nprocs". Empty if none is similar.
absl::string_view NearestFlag(absl::string_view name);

}  // namespace muster::launcher

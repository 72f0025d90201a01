// The flags of muster-train.
#pragma once

#include <cstdint>

#include "trainer/app/options/options.h"

namespace CLI {
class App;
}

namespace muster::trainer {

// Values of flags that are not stored in Options as they are.
struct RawOptions {
  std::int64_t timeout_seconds = 300;
  bool large_mlp = false;  // --model mlp-large
};

// Adds every flag to `app` with its default, group by group in the order of --help. Parsing writes
// to `options` and `raw`, which must outlive `app`.
void AddFlags(CLI::App& app, Options& options, RawOptions& raw);

}  // namespace muster::trainer

// The flags of muster-train.
#pragma once

#include <cstdint>

#include "trainer/app/options/options.h"

namespace CLI {
class App;
}

namespace muster::trainer {

// What some flags are read into before it becomes a part of the options.
struct RawOptions {
  std::int64_t timeout_seconds = 300;
  bool large_mlp = false;  // --model mlp-large
};

// Adds every flag to `app`, group by group in the order of --help, each with its default. Parsing
// then writes to `options` and `raw`, which must outlive `app`.
void AddFlags(CLI::App& app, Options& options, RawOptions& raw);

}  // namespace muster::trainer

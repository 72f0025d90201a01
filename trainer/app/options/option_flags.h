// The flags of muster-train.
#pragma once

#include <cstdint>

#include "trainer/app/options/options.h"
#include "trainer/app/options/setting.h"

namespace CLI {
class App;
}

namespace muster::trainer {

// Values of flags that are not stored in Options as they are.
struct RawOptions {
  std::int64_t timeout_seconds = 300;
  bool large_mlp = false;  // --model mlp-large
};

// Adds every flag with its default to `app`, group by group in the order of --help, and to
// `settings`. Parsing writes to `options` and `raw`, which must outlive both.
void AddFlags(CLI::App& app, Options& options, RawOptions& raw, SettingSource& settings);

}  // namespace muster::trainer

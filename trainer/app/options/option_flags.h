// The flags of muster-train.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "trainer/app/options/options.h"
#include "trainer/app/options/setting.h"

namespace CLI {
class App;
}

namespace muster::trainer {

// Values of flags that are not stored in Options as they are.
struct RawOptions {
  std::int64_t timeout_seconds = 300;
  std::string model;     // --model
  std::string mesh;      // --mesh, or empty
  std::string cuts;      // --pipeline-cuts
  std::string data_set;  // --dataset, or the first one
  // The names of each model's flags, by its own.
  std::map<std::string, std::vector<std::string>> model_flags;
};

// Adds every flag with its default to `app`, group by group in the order of --help, and to
// `settings`. Parsing writes to `options`, to `raw` and to what the registry's models are made of;
// all must outlive both. kInvalidArgument when a model has a flag that cannot be.
absl::Status AddFlags(CLI::App& app, const Registry& registry, Options& options, RawOptions& raw,
                      SettingSource& settings);

}  // namespace muster::trainer

// What the command lines of eval, generate and predict have in common.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace CLI {
class App;
}

namespace muster::trainer {

// What a command can do with.
enum class WantedModel { kAny, kText, kImages };

// Where the trained model comes from.
struct ModelSource {
  WantedModel wanted = WantedModel::kAny;
  std::string checkpoint;  // a file or a directory
  std::int64_t heads = 0;  // of a GPT whose file does not say; 0: not given
};

// Adds --checkpoint, which must be given: what `program` wrote. `source` must outlive `app`.
void AddCheckpointFlag(CLI::App& app, ModelSource& source, const std::string& program);
// Adds --heads, for commands that take a GPT.
void AddHeadsFlag(CLI::App& app, ModelSource& source);

// Parses `argv`, which begins with the command's name. Returns the text of --help when that was
// asked for, else nothing. kInvalidArgument and one sentence for a mistake.
absl::StatusOr<std::string> ParseCommand(CLI::App& app, int argc, const char* const* argv);

// Tells the user of each of `warnings`, a sentence each, on stderr.
void SayWarnings(const std::string& program, const std::vector<std::string>& warnings);

}  // namespace muster::trainer

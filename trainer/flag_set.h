// Where a recipe declares the flags of its model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster::trainer {

// Adds flags to a command line. Each flag writes to `value` when the command line is parsed, so
// `value` must outlive that; what it holds before is the default that --help shows. `flag` begins
// with two dashes, except for Switch, and is none that the program has already; any other ends the
// program with one sentence. A value that does not fit ends the program with one sentence
// before any rank has joined. Each value becomes part of the checkpoint, and a run that resumes
// with another one is refused.
class FlagSet {
 public:
  virtual ~FlagSet() = default;

  // A number from `low` to `high`, both included.
  virtual void Number(const std::string& flag, std::int64_t& value, std::int64_t low,
                      std::int64_t high, const std::string& description) = 0;
  virtual void Number(const std::string& flag, double& value, double low, double high,
                      const std::string& description) = 0;
  // Any text.
  virtual void Text(const std::string& flag, std::string& value,
                    const std::string& description) = 0;
  // --flag and --no-flag; `flag` is given without dashes.
  virtual void Switch(const std::string& flag, bool& value, const std::string& description) = 0;
  // One of `words`, as `value` is before.
  virtual void Choice(const std::string& flag, std::string& value,
                      const std::vector<std::string>& words, const std::string& description) = 0;
};

}  // namespace muster::trainer

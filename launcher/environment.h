// The environment as a value, so that code that depends on it says so in its arguments.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace muster::launcher {

// Name to value. Ordered, so that whatever is made from it is the same every time.
using Environment = std::map<std::string, std::string>;

// Reads an environment block such as `environ`: NAME=VALUE strings, ended by a null pointer. An
// entry without '=' is left out; of two entries with the same name the first counts, as for
// getenv().
Environment ReadEnvironment(const char* const* block);

// The other way: NAME=VALUE, in order of name.
std::vector<std::string> ToBlock(const Environment& environment);

// The value of `name`, or `fallback` when it is unset. A variable that is set to "" counts as
// unset: a job template with an unfilled field means "not given".
std::string GetOr(const Environment& environment, const std::string& name,
                  const std::string& fallback);

}  // namespace muster::launcher

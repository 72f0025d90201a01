// Shared by tests of commands: their arguments, and parsing of their output.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "base/json.h"

namespace muster::trainer {

// Words of a command line.
using Arguments = std::vector<std::string>;

inline Arguments operator+(Arguments first, const Arguments& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

// One value for each line.
inline std::vector<base::Json> LinesOfJson(const std::string& text) {
  std::vector<base::Json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(base::ParseJson(line));
  return lines;
}

}  // namespace muster::trainer

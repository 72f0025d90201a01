// The file for --config: a line `flag = value` for each flag, in INI or TOML.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/app/options/setting.h"

namespace CLI {
class Config;
}

namespace muster::trainer {

// Returns CLI11's reader for such files, except that a '#' in quotes does not begin a comment.
std::shared_ptr<CLI::Config> ConfigFormat();

// Returns a file with `settings`. A value of several lines becomes a list of them. A value that
// cannot be written in it, because it contains both kinds of quotes, is left out, with a comment
// that says so.
std::string ConfigText(const std::vector<Setting>& settings);

}  // namespace muster::trainer

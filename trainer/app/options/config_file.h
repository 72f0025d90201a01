// The file for --config: a line `flag = value` for each flag, in INI or TOML.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "trainer/app/options/setting.h"

namespace CLI {
class Config;
}

namespace muster::trainer {

// Returns CLI11's reader for such files, except that strings in quotes are TOML's: they may hold
// '#', ',' and quotes, and in double quotes \n, \t, \r, \b, \f, \", \\ and \u00XX stand for what
// cannot be written. Other backslashes stand for themselves. Of flags that are not among `lists`
// (without dashes) several values are CLI11's ConversionError. A byte order mark is passed over.
std::shared_ptr<CLI::Config> ConfigFormat(std::set<std::string> lists);

// Returns a file with `settings` of a run of `program`, which ConfigFormat reads back with the same
// values. What is empty by default and still is has no line.
std::string ConfigText(const std::vector<Setting>& settings, const std::string& program);

}  // namespace muster::trainer

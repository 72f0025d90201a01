// What `--print-config` shows: how the command line and the environment were understood.
#pragma once

#include <string>

#include "base/redact.h"
#include "launcher/config/launch_config.h"

namespace muster::launcher {

// A JSON object with a member for each field of the config, times in seconds; ends in a newline.
std::string ConfigText(const LaunchConfig& config, const base::Redactor& redact);

}  // namespace muster::launcher

#include "launcher/cli/command_run.h"

#include <cstdio>

#include "base/program.h"
#include "base/safe_text.h"

namespace muster::launcher {

int PrintOutput(const char* command, const std::string& text) {
  return base::PrintOut(command, text) ? kExitSuccess : kExitNodeFailed;
}

int Fail(const char* command, absl::string_view why, int exit_code) {
  const std::string line = base::SafeLine({why.data(), why.size()});
  std::fprintf(stderr, "%s: %s\n", command, line.c_str());
  return exit_code;
}

}  // namespace muster::launcher

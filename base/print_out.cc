#include "base/print_out.h"

#include <cstdio>

#include "base/failure.h"

namespace muster::base {

bool PrintOut(const char* command, const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) {
    return true;
  }
  std::fprintf(stderr, "%s: write stdout: %s\n", command, SystemCause().c_str());
  return false;
}

}  // namespace muster::base

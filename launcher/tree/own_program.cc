#include "launcher/tree/own_program.h"

#include <unistd.h>
#include <climits>

namespace muster::launcher {

std::string OwnProgram() {
  char path[PATH_MAX];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  return size > 0 ? std::string(path, static_cast<std::size_t>(size)) : "muster";
}

}  // namespace muster::launcher

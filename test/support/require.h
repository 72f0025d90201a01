// What a test cannot do without.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace muster::test {

// Aborts, with `what` and errno's text on standard error, unless `ok`.
inline void Require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "%s: %s\n", what, std::strerror(errno));
  std::abort();
}

}  // namespace muster::test

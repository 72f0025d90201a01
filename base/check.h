// For impossible states. What a network, a disk or a user can cause is an absl::Status instead.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace muster::base {

[[noreturn, gnu::cold, gnu::noinline]] inline void CheckFailed(const char* file, int line,
                                                               const char* condition) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace muster::base

// If `condition` does not hold, the program's own state is wrong, and it aborts before anyone acts
// on its output. Evaluated once in all configurations, so it must be cheap.
#define MUSTER_CHECK(condition)       \
  (__builtin_expect(!!(condition), 1) \
       ? static_cast<void>(0)         \
       : ::muster::base::CheckFailed(__FILE__, __LINE__, #condition))

#include "base/signal_names.h"

#include <csignal>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace muster::base {

std::optional<int> ParseSignal(absl::string_view name) {
  absl::ConsumePrefix(&name, "SIG");
  for (int signal = 1; signal < NSIG; ++signal) {
    const char* known = sigabbrev_np(signal);
    if (known != nullptr && name == known) return signal;
  }
  return std::nullopt;
}

std::string SignalName(int signal) {
  // glibc knows the standard ones; the real-time range is counted from its ends as `kill -l` does.
  if (const char* name = ::sigabbrev_np(signal)) return absl::StrCat("SIG", name);
  if (signal == SIGRTMIN) return "SIGRTMIN";
  if (signal > SIGRTMIN && signal <= SIGRTMAX) {
    return absl::StrCat("SIGRTMIN+", signal - SIGRTMIN);
  }
  return absl::StrCat("signal ", signal);
}

}  // namespace muster::base

#include "base/signal_names.h"

#include <csignal>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"

namespace muster::launcher {

std::optional<int> ParseSignal(absl::string_view name) {
  absl::ConsumePrefix(&name, "SIG");
  for (int signal = 1; signal < NSIG; ++signal) {
    const char* known = sigabbrev_np(signal);
    if (known != nullptr && name == known) return signal;
  }
  return std::nullopt;
}

}  // namespace muster::launcher

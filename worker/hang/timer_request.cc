#include "worker/hang/timer_request.h"

#include <cmath>
#include <csignal>

#include "absl/strings/numbers.h"
#include "base/json.h"

namespace muster::worker {
namespace {

using base::Json;

// A finite number, or the text of one.
std::optional<double> NumberAt(const Json& object, const char* key) {
  const auto entry = object.find(key);
  double number = 0;
  if (entry == object.end()) return std::nullopt;
  if (entry->is_number()) {
    number = entry->get<double>();
  } else if (!entry->is_string() || !absl::SimpleAtod(entry->get<std::string>(), &number)) {
    return std::nullopt;
  }
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

bool IsBetween(double number, double least, double most) {
  return number >= least && number <= most;
}

}  // namespace

std::optional<TimerRequest> ParseTimerRequest(std::string_view line) {
  const Json object = base::ParseJson(line);
  if (!object.is_object()) return std::nullopt;
  const std::optional<double> pid = NumberAt(object, "pid");
  const std::optional<double> expiration_time = NumberAt(object, "expiration_time");
  const auto scope = object.find("scope_id");
  const double signal =
      object.contains("signal") ? NumberAt(object, "signal").value_or(NSIG) : SIGKILL;
  if (!pid || !IsBetween(*pid, 1, 0x7fffffff) || !expiration_time || scope == object.end() ||
      !scope->is_string() || !IsBetween(signal, -NSIG, SIGRTMAX)) {
    return std::nullopt;
  }
  return TimerRequest{static_cast<pid_t>(*pid), scope->get<std::string>(), *expiration_time,
                      static_cast<int>(signal)};
}

}  // namespace muster::worker

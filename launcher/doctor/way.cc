#include "launcher/doctor/way.h"

#include <cmath>

#include "rendezvous/wire/printable.h"

namespace muster::launcher {
namespace {

constexpr std::size_t kMaxCause = 200;

double NumberOf(const base::Json& json, const char* name) {
  if (!json.is_object()) return 0;
  const auto found = json.find(name);
  if (found == json.end() || !found->is_number()) return 0;
  const double number = found->get<double>();
  return std::isfinite(number) && std::abs(number) < 1e15 ? number : 0;
}

int SmallNumberOf(const base::Json& json, const char* name) {
  const double number = NumberOf(json, name);
  return number > 0 && number < 1e6 ? static_cast<int>(number) : 0;
}

std::string CauseOf(const base::Json& json, const char* name) {
  if (!json.is_object()) return "";
  const auto found = json.find(name);
  if (found == json.end() || !found->is_string()) return "";
  return rendezvous::OneLine(found->get_ref<const std::string&>(), kMaxCause);
}

}  // namespace

base::Json WayJson(const Way& way) {
  return {{"outcome", static_cast<int>(way.outcome)},
          {"cause", way.cause},
          {"trouble", way.trouble},
          {"stalls", way.stalls ? 1 : 0},
          {"latency_us", way.latency_us},
          {"clock_ahead_s", way.clock_ahead_s},
          {"bytes_per_s", way.bytes_per_s},
          {"mtu", way.mtu}};
}

base::Json ArrivalJson(const Arrival& arrival) {
  return {{"largest_packet", arrival.largest_packet}, {"mtu", arrival.mtu}};
}

Way ReadWay(const base::Json& json) {
  Way way;
  const double outcome = json.is_object() && json.contains("outcome")
                             ? NumberOf(json, "outcome")
                             : static_cast<double>(DialOutcome::kFailed);
  way.outcome = outcome >= 0 && outcome <= static_cast<double>(DialOutcome::kFailed)
                    ? static_cast<DialOutcome>(outcome)
                    : DialOutcome::kFailed;
  way.cause = CauseOf(json, "cause");
  way.trouble = CauseOf(json, "trouble");
  way.stalls = NumberOf(json, "stalls") == 1;
  way.latency_us = std::max(0.0, NumberOf(json, "latency_us"));
  way.clock_ahead_s = NumberOf(json, "clock_ahead_s");
  way.bytes_per_s = std::max(0.0, NumberOf(json, "bytes_per_s"));
  way.mtu = SmallNumberOf(json, "mtu");
  return way;
}

Arrival ReadArrival(const base::Json& json) {
  return {.largest_packet = SmallNumberOf(json, "largest_packet"),
          .mtu = SmallNumberOf(json, "mtu")};
}

}  // namespace muster::launcher

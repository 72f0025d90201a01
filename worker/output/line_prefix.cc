#include "worker/output/line_prefix.h"

#include <cstdio>
#include <ctime>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace muster::worker {
namespace {

constexpr char kTime[] = "${time}";

}  // namespace

LinePrefix::LinePrefix(const std::string& text, pid_t pid)
    : text_(absl::StrReplaceAll(text, {{"${pid}", absl::StrCat(pid)}})),
      has_time_(absl::StrContains(text_, kTime)) {}

std::string LinePrefix::At(Time now) const {
  return has_time_ ? absl::StrReplaceAll(text_, {{kTime, ClockTime(now)}}) : text_;
}

std::string ClockTime(LinePrefix::Time time) {
  const auto since_epoch = std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since_epoch);
  const std::time_t whole = seconds.count();
  std::tm local;
  ::localtime_r(&whole, &local);
  char text[32];
  std::snprintf(text, sizeof text, "%02d:%02d:%02d.%03d", local.tm_hour, local.tm_min, local.tm_sec,
                static_cast<int>((since_epoch - seconds).count()));
  return text;
}

}  // namespace muster::worker

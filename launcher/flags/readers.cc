#include "launcher/flags/readers.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/seconds.h"
#include "rendezvous/core/names.h"
#include "rendezvous/net/endpoint.h"

namespace muster::launcher {
namespace {

using std::chrono::milliseconds;

absl::StatusOr<int> ReadNumberFrom(int least, absl::string_view text) {
  int number = 0;
  if (absl::SimpleAtoi(text, &number) && number >= least) return number;
  return absl::InvalidArgumentError(absl::StrCat("is not valid; give a whole number from ", least));
}

}  // namespace

absl::StatusOr<std::string> ReadText(absl::string_view text) {
  return std::string(text);
}

absl::StatusOr<bool> ReadSwitch(absl::string_view text) {
  int number = 0;
  if (absl::SimpleAtoi(text, &number)) return number != 0;
  bool on = false;
  if (absl::SimpleAtob(text, &on)) return on;
  return absl::InvalidArgumentError("is neither 0 nor 1; set it to one of them");
}

absl::StatusOr<int> ReadNumber(absl::string_view text) {
  return ReadNumberFrom(0, text);
}

absl::StatusOr<int> ReadNumberAboveZero(absl::string_view text) {
  return ReadNumberFrom(1, text);
}

absl::StatusOr<milliseconds> ReadSeconds(absl::string_view text) {
  const auto time = base::ParseSeconds(text);
  if (time) return *time;
  return absl::InvalidArgumentError("is not a time; give a number of seconds from 0");
}

absl::StatusOr<milliseconds> ReadSecondsAboveZero(absl::string_view text) {
  const auto time = base::ParseSeconds(text);
  if (time && time->count() > 0) return *time;
  return absl::InvalidArgumentError("is not a time; give a number of seconds above 0");
}

absl::StatusOr<std::string> ReadHost(absl::string_view text) {
  return text.empty() ? std::string() : rendezvous::ParseHost(text);
}

absl::StatusOr<std::string> ReadName(const char* what, absl::string_view text) {
  std::string name(text);
  const absl::Status status = rendezvous::CheckName(what, name);
  if (status.ok()) return name;
  return absl::InvalidArgumentError(absl::StrCat("is not usable: ", status.message()));
}

absl::Status NoSuchChoice(const std::vector<absl::string_view>& choices) {
  const auto but_last = absl::MakeConstSpan(choices).first(choices.size() - 1);
  return absl::InvalidArgumentError(absl::StrCat("is not a valid choice; use ",
                                                 absl::StrJoin(but_last, ", "),
                                                 but_last.empty() ? "" : " or ", choices.back()));
}

}  // namespace muster::launcher

#include "base/cli/readers.h"

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

#include "base/durations.h"

namespace muster::base {

using std::chrono::milliseconds;

absl::StatusOr<std::string> ReadText(absl::string_view text) {
  return std::string(text);
}

absl::StatusOr<std::string> ReadNonEmpty(absl::string_view text) {
  if (!text.empty()) return std::string(text);
  return absl::InvalidArgumentError("is empty; was a variable not set?");
}

absl::StatusOr<bool> ReadSwitch(absl::string_view text) {
  int number = 0;
  if (absl::SimpleAtoi(text, &number)) return number != 0;
  bool on = false;
  if (absl::SimpleAtob(text, &on)) return on;
  return absl::InvalidArgumentError("is neither 0 nor 1; set it to one of them");
}

absl::StatusOr<int> ReadNumber(absl::string_view text) {
  return ReadNumberWithin(0, std::numeric_limits<int>::max(), text);
}

absl::StatusOr<int> ReadNumberAboveZero(absl::string_view text) {
  return ReadNumberWithin(1, std::numeric_limits<int>::max(), text);
}

absl::StatusOr<int> ReadNumberWithin(int least, int most, absl::string_view text) {
  int number = 0;
  if (absl::SimpleAtoi(text, &number) && number >= least && number <= most) return number;
  return absl::InvalidArgumentError(
      absl::StrCat("is not valid; give a whole number from ", least,
                   most == std::numeric_limits<int>::max() ? "" : absl::StrCat(" to ", most)));
}

absl::StatusOr<milliseconds> ReadSeconds(absl::string_view text) {
  const auto time = ParseSeconds(text);
  if (time) return *time;
  return absl::InvalidArgumentError("is not a number of seconds; give 0 or more");
}

absl::StatusOr<milliseconds> ReadSecondsAboveZero(absl::string_view text) {
  const auto time = ParseSeconds(text);
  if (time && time->count() > 0) return *time;
  return absl::InvalidArgumentError("is not a positive number of seconds");
}

absl::Status NoSuchChoice(const std::vector<absl::string_view>& choices) {
  const auto but_last = absl::MakeConstSpan(choices).first(choices.size() - 1);
  return absl::InvalidArgumentError(absl::StrCat("is not a valid choice; use ",
                                                 absl::StrJoin(but_last, ", "),
                                                 but_last.empty() ? "" : " or ", choices.back()));
}

}  // namespace muster::base

// Parsers of flags' values. An error's message is a phrase that follows the parsed text ("is not a
// time; give a number of seconds from 0").
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::base {

// The text unchanged.
absl::StatusOr<std::string> ReadText(absl::string_view text);

// The text, which must not be empty.
absl::StatusOr<std::string> ReadNonEmpty(absl::string_view text);

// 1 or 0, true or false; any other whole number is accepted, too, as in torchrun.
absl::StatusOr<bool> ReadSwitch(absl::string_view text);

// A whole number, from 0 or from 1 up.
absl::StatusOr<int> ReadNumber(absl::string_view text);
absl::StatusOr<int> ReadNumberAboveZero(absl::string_view text);

// A time in seconds, possibly with a fraction; from 0 up, or above 0.
absl::StatusOr<std::chrono::milliseconds> ReadSeconds(absl::string_view text);
absl::StatusOr<std::chrono::milliseconds> ReadSecondsAboveZero(absl::string_view text);

// A whole number from kLeast to kMost.
absl::StatusOr<int> ReadNumberWithin(int least, int most, absl::string_view text);
template <int kLeast, int kMost>
absl::StatusOr<int> ReadWithin(absl::string_view text) {
  return ReadNumberWithin(kLeast, kMost, text);
}

// "is not a valid choice; use a, b or c".
absl::Status NoSuchChoice(const std::vector<absl::string_view>& choices);

// The value of one of `kWords`, an array of structs with a `word` and a `value`.
template <const auto& kWords>
auto ReadWord(absl::string_view text) -> absl::StatusOr<decltype(kWords[0].value)> {
  std::vector<absl::string_view> choices;
  for (const auto& word : kWords) {
    if (text == word.word) return word.value;
    choices.push_back(word.word);
  }
  return NoSuchChoice(choices);
}

}  // namespace muster::base

// Readers of flags' values: each turns a text into a value, or into an error whose message is a
// phrase that follows the text it is about ("is not a time; give a number of seconds from 0").
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::launcher {

// The text as it is.
absl::StatusOr<std::string> ReadText(absl::string_view text);

// 1 or 0, true or false; also any other whole number, as with torchrun.
absl::StatusOr<bool> ReadSwitch(absl::string_view text);

// A whole number, from 0 or from 1 up.
absl::StatusOr<int> ReadNumber(absl::string_view text);
absl::StatusOr<int> ReadNumberAboveZero(absl::string_view text);

// A time in seconds, possibly with a fraction; from 0 up, or above 0.
absl::StatusOr<std::chrono::milliseconds> ReadSeconds(absl::string_view text);
absl::StatusOr<std::chrono::milliseconds> ReadSecondsAboveZero(absl::string_view text);

// A host's name or address, with or without the brackets of an IPv6 address; or empty.
absl::StatusOr<std::string> ReadHost(absl::string_view text);

// A plain name, which errors call `what`: ids and roles become file names and keys on every node.
absl::StatusOr<std::string> ReadName(const char* what, absl::string_view text);

// "is not a valid choice; use a, b or c".
absl::Status NoSuchChoice(const std::vector<absl::string_view>& choices);

// The value of one of `kWords`, an array of Word (launcher/config/words.h).
template <const auto& kWords>
auto ReadWord(absl::string_view text) -> absl::StatusOr<decltype(kWords[0].value)> {
  std::vector<absl::string_view> choices;
  for (const auto& word : kWords) {
    if (text == word.word) return word.value;
    choices.push_back(word.word);
  }
  return NoSuchChoice(choices);
}

}  // namespace muster::launcher

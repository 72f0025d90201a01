#include "worker/hang/beat.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace muster::worker {
namespace {

// absl's own parser takes signs and spaces, too.
template <typename Number>
bool ParseNumber(absl::string_view text, Number* number) {
  return !text.empty() && absl::ascii_isdigit(static_cast<unsigned char>(text[0])) &&
         absl::SimpleAtoi(text, number);
}

// Also "nan" and "inf", as programs print them; but not the spaces that absl's parser takes.
std::optional<double> ParseReal(absl::string_view text) {
  double number = 0;
  const bool has_space = std::any_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isspace(static_cast<unsigned char>(c));
  });
  if (has_space || !absl::SimpleAtod(text, &number)) return std::nullopt;
  return number;
}

bool IsPhaseName(absl::string_view name) {
  return !name.empty() && name.size() <= kMaxPhaseName &&
         absl::ascii_islower(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return absl::ascii_islower(byte) || absl::ascii_isdigit(byte) || c == '_';
         });
}

bool AddPhase(absl::string_view name, double seconds, std::vector<BeatPhase>& phases) {
  if (!IsPhaseName(name) || !(seconds >= 0 && seconds <= kMaxPhaseSeconds)) return false;
  const bool is_there = std::any_of(phases.begin(), phases.end(), [&](const BeatPhase& phase) {
    return absl::string_view(phase.name) == name;
  });
  if (is_there || phases.size() == kMaxPhases) return false;
  phases.push_back({std::string(name), seconds});
  return true;
}

// False: it says nothing that can be read.
bool TakeFact(absl::string_view word, Beat& beat) {
  const std::size_t equals = word.find('=');
  if (equals == absl::string_view::npos) return false;
  const absl::string_view name = word.substr(0, equals);
  const std::optional<double> value = ParseReal(word.substr(equals + 1));
  if (!value) return false;
  if (name == "loss") {
    beat.loss = value;
    return true;
  }
  if (name != "samples_per_second") return AddPhase(name, *value, beat.phases);
  if (!std::isfinite(*value) || *value < 0) return false;
  beat.samples_per_second = value;
  return true;
}

}  // namespace

bool IsWaitPhase(std::string_view name) {
  return absl::StartsWith(absl::string_view(name.data(), name.size()), "wait");
}

std::optional<Beat> ParseBeat(std::string_view text) {
  if (text.size() > kMaxBeat) return std::nullopt;
  const absl::string_view line =
      absl::StripTrailingAsciiWhitespace(absl::string_view(text.data(), text.size()));
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  Beat beat;
  if (words.size() < 2 || words[0] != "beat") return std::nullopt;
  if (!ParseNumber(words[1], &beat.rank)) return std::nullopt;
  std::size_t next = 2;
  if (words.size() > 2 && !absl::StrContains(words[2], '=')) {
    if (!ParseNumber(words[2], &beat.step.emplace())) return std::nullopt;
    ++next;
  }
  for (; next < words.size(); ++next) {
    if (!TakeFact(words[next], beat) && beat.ignored.empty()) {
      beat.ignored = std::string(words[next]);
    }
  }
  return beat;
}

}  // namespace muster::worker

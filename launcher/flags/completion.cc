#include "launcher/flags/completion.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace muster::launcher {

std::string CompletionScript(Shell shell) {
  switch (shell) {
    case Shell::kBash:
      return BashCompletion();
    case Shell::kZsh:
      return ZshCompletion();
    case Shell::kFish:
      return FishCompletion();
  }
  return "";
}

ValueKind ValueKindOf(const Flag& flag) {
  if (!TakesValue(flag)) return ValueKind::kNone;
  if (!ChoicesOf(flag).empty()) return ValueKind::kChoice;
  if (flag.value_name == "DIR") return ValueKind::kDirectory;
  if (flag.value_name == "FILE" || flag.value_name == "PATH") return ValueKind::kFile;
  return ValueKind::kOther;
}

std::vector<std::string> ChoicesOf(const Flag& flag) {
  std::vector<std::string> choices;
  const std::vector<absl::string_view> words = absl::StrSplit(flag.value_name, '|');
  if (words.size() < 2) return choices;
  for (const absl::string_view word : words) {
    const bool literal = std::all_of(word.begin(), word.end(), [](unsigned char c) {
      return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
    });
    if (literal && !word.empty()) choices.emplace_back(word);
  }
  return choices;
}

std::string UnderscoreName(const Flag& flag) {
  const std::string name =
      absl::StrCat("--", absl::StrReplaceAll(flag.name.substr(2), {{"-", "_"}}));
  return name == flag.name ? "" : name;
}

std::vector<std::string> ShortNames(const Flag& flag) {
  return absl::StrSplit(flag.short_name, '|', absl::SkipEmpty());
}

}  // namespace muster::launcher

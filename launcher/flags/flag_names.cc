#include "launcher/flags/flag_names.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "launcher/flags/flag_table.h"

namespace muster::launcher {
namespace {

// "--rdzv_id" -> "--rdzv-id".
std::string WithDashes(absl::string_view name) {
  return absl::StrReplaceAll(name, {{"_", "-"}});
}

// How far two words are apart: the letters to insert, drop or change to make one of the other.
struct Distance {
  std::size_t whole;      // Levenshtein's: to make all of `b`
  std::size_t beginning;  // to make the beginning of `b` that is nearest
};

// Exact below `most`; what is not is `most` or more.
Distance DistanceTo(absl::string_view a, absl::string_view b, std::size_t most) {
  // An argument may have 128 KiB, and the steps are the product of both lengths.
  if (a.size() >= b.size() + most) return {most, most};
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  std::size_t least = 0;
  for (std::size_t i = 1; i <= a.size() && least < most; ++i) {
    std::size_t diagonal = row[0];
    row[0] = least = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
      least = std::min(least, row[j]);
    }
  }
  return {.whole = row.back(), .beginning = least};
}

}  // namespace

std::string EnvironmentVariable(const Flag& flag) {
  if (flag.kind == Flag::Kind::kAsk || !flag.has_variable) return "";
  const absl::string_view bare = flag.name.substr(2);
  return absl::StrCat("PET_", absl::AsciiStrToUpper(absl::StrReplaceAll(bare, {{"-", "_"}})));
}

std::vector<const Flag*> MatchFlags(absl::string_view name) {
  std::vector<const Flag*> matches;
  const bool is_long = absl::StartsWith(name, "--");
  const std::string dashed = WithDashes(name);
  for (const Flag& flag : RunFlagTable()) {
    if (flag.name == dashed) return {&flag};
    if (is_long && absl::StartsWith(flag.name, dashed)) matches.push_back(&flag);
  }
  const auto is_ours = [](const Flag* flag) { return flag->ours; };
  if (std::count_if(matches.begin(), matches.end(), std::not_fn(is_ours)) == 1) {
    matches.erase(std::remove_if(matches.begin(), matches.end(), is_ours), matches.end());
  }
  if (!is_long) {
    const ShortName short_name = MatchShortName(name);
    if (short_name.name == name) matches = {short_name.flag};
  }
  return matches;
}

ShortName MatchShortName(absl::string_view arg) {
  ShortName longest;
  for (const Flag& flag : RunFlagTable()) {
    for (const absl::string_view name : absl::StrSplit(flag.short_name, '|', absl::SkipEmpty())) {
      if (name.size() > longest.name.size() && absl::StartsWith(arg, name)) longest = {&flag, name};
    }
  }
  return longest;
}

absl::string_view NearestFlag(absl::string_view name) {
  const std::string dashed = WithDashes(absl::StripPrefix(absl::StripPrefix(name, "-"), "-"));
  absl::string_view nearest;
  absl::string_view nearest_beginning;
  // More than a third of the letters wrong is another word; of a name that breaks off, a sixth.
  std::size_t least = dashed.size() / 3 + 1;
  std::size_t least_beginning = dashed.size() / 6 + 1;
  for (const Flag& flag : RunFlagTable()) {
    const Distance distance =
        DistanceTo(dashed, flag.name.substr(2), std::max(least, least_beginning));
    if (distance.whole < least) {
      least = distance.whole;
      nearest = flag.name;
    }
    if (distance.beginning < least_beginning) {
      least_beginning = distance.beginning;
      nearest_beginning = flag.name;
    }
  }
  return nearest.empty() ? nearest_beginning : nearest;
}

}  // namespace muster::launcher

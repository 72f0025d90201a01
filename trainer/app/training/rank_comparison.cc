#include "trainer/app/training/rank_comparison.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <ATen/core/Tensor.h>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

#include "base/version.h"
#include "trainer/app/options/setting_rule.h"
#include "trainer/app/training/broadcast.h"
#include "trainer/compat/torch_version.h"

namespace muster::trainer {
namespace {

constexpr char kProgram[] = "muster-train";
constexpr char kLibrary[] = "LibTorch";
constexpr char kTrainSamples[] = "data set";
constexpr char kTestSamples[] = "test set";
constexpr char kDataColumns[] = "columns";
constexpr char kDataClasses[] = "classes";
constexpr char kDataScale[] = "mean or deviation";
constexpr char kGiven[] = "given";

constexpr std::size_t kMostDigits = 24;
constexpr std::size_t kMostToShow = 200;  // bytes of a value in a sentence

// "60,000 images".
std::string Samples(const Dataset& data) {
  std::string digits = std::to_string(data.size());
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return absl::StrCat(digits, " ", SampleUnit(data.shape().kind));
}

// All digits.
std::string ScaleText(const Normalization& scale) {
  std::string text;
  for (const auto* numbers : {&scale.mean, &scale.deviation}) {
    for (const double number : *numbers) absl::StrAppendFormat(&text, "%a ", number);
  }
  return text;
}

// A line for each fact. A value may have line breaks of its own, and any other byte.
std::string Pack(const RankFacts& facts) {
  std::string text;
  for (const auto& [name, value] : facts) {
    absl::StrAppend(&text, name, "\t", absl::CEscape(value), "\n");
  }
  return text;
}

RankFacts Unpack(const std::string& text) {
  RankFacts facts;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    std::pair<std::string, std::string> fact = absl::StrSplit(line, absl::MaxSplits('\t', 1));
    std::string value;
    if (absl::CUnescape(fact.second, &value)) fact.second = std::move(value);
    facts.push_back(std::move(fact));
  }
  return facts;
}

bool FitsASentence(const std::string& value) {
  return value.size() <= kMostToShow && value.find('\n') == std::string::npos;
}

std::string Sentence(const std::string& name, int rank, const std::string& value,
                     const std::string& of_zero) {
  const std::string one = absl::StrCat("rank ", rank);
  if (name == kProgram || name == kLibrary) {
    return absl::StrCat(one, " has ", name, " ", value, ", and rank 0 has ", of_zero,
                        ": install the same version on every host");
  }
  if (name == kTrainSamples || name == kTestSamples) {
    return absl::StrCat(one, "'s ", name, " has ", value, ", and rank 0's ", of_zero,
                        ": give all ranks the same data");
  }
  if (name == kDataColumns || name == kDataClasses || name == kDataScale) {
    return absl::StrCat(one, "'s data has other ", name, " than rank 0's",
                        ": give all ranks the same data");
  }
  const std::string advice = ": give all ranks the same options";
  if (value.empty()) return absl::StrCat(one, " has no ", name, ", and rank 0 has one", advice);
  if (of_zero.empty() && FitsASentence(value)) {
    return absl::StrCat(one, " has ", name, ", and rank 0 has none", advice);
  }
  if (!FitsASentence(value) || !FitsASentence(of_zero)) {
    return absl::StrCat(one, " has another ", name, " than rank 0", advice);
  }
  return absl::StrCat(one, " has ", name, " ", value, ", and rank 0 has ", of_zero, advice);
}

// The parameters and buffers, a line each.
std::string TensorsText(const Model& model) {
  std::string text;
  for (const NamedTensor& named : model.StateDict()) {
    absl::StrAppend(&text, named.name, " of [", absl::StrJoin(named.tensor.sizes().vec(), ", "),
                    "] ", at::toString(named.tensor.scalar_type()),
                    named.tensor.requires_grad() ? "" : " without a gradient", "\n");
  }
  return text;
}

// kInvalidArgument at the first line in which they differ.
absl::Status CompareTensors(const std::string& mine, const std::string& of_zero) {
  if (mine == of_zero) return absl::OkStatus();
  const std::vector<std::string> here = absl::StrSplit(mine, '\n');
  const std::vector<std::string> there = absl::StrSplit(of_zero, '\n');
  // The last line of each is empty: where one of them ends, they differ.
  std::size_t at = 0;
  while (at + 1 < std::min(here.size(), there.size()) && here[at] == there[at]) ++at;
  return absl::InvalidArgumentError(
      absl::StrCat("tensor ", at + 1, " of the model is ", here[at].empty() ? "missing" : here[at],
                   ", and on rank 0 it is ", there[at].empty() ? "missing" : there[at],
                   ": give all ranks the same model"));
}

}  // namespace

RankFacts FactsOf(const std::vector<Setting>& settings, const Splits& data) {
  RankFacts facts = {{kProgram, base::kVersion},
                     {kLibrary, compat::kTorchVersion},
                     {kTrainSamples, Samples(*data.train)},
                     {kTestSamples, Samples(*data.test)},
                     {kDataColumns, absl::StrJoin(data.facts.columns, "\n")},
                     {kDataClasses, absl::StrJoin(data.facts.classes, "\n")},
                     {kDataScale, ScaleText(data.facts.normalization)}};
  for (const Setting& setting : settings) {
    const SettingRule::Ranks rule = RuleOf(setting).ranks;
    if (rule == SettingRule::Ranks::kFree) continue;
    const bool given = rule == SettingRule::Ranks::kGiven && !setting.value.empty();
    facts.emplace_back(setting.flag, given ? kGiven : setting.value);
  }
  return facts;
}

std::string FirstDifference(const std::vector<RankFacts>& facts) {
  for (std::size_t rank = 1; rank < facts.size(); ++rank) {
    for (const auto& [name, of_zero] : facts[0]) {
      const auto same_name = [&name = name](const auto& fact) { return fact.first == name; };
      const auto found = std::find_if(facts[rank].begin(), facts[rank].end(), same_name);
      if (found == facts[rank].end() || found->second == of_zero) continue;
      return Sentence(name, static_cast<int>(rank), found->second, of_zero);
    }
  }
  return "";
}

absl::Status CheckRanksAlike(const RankFacts& mine, Group& group) {
  const std::string text = Pack(mine);
  const std::string hash = absl::StrCat(std::hash<std::string>()(text));
  const std::vector<std::string> hashes = group.Gather(hash, kMostDigits);
  if (std::count(hashes.begin(), hashes.end(), hash) == group.size()) return absl::OkStatus();

  std::size_t most = 0;
  for (const std::string& digits : group.Gather(absl::StrCat(text.size()), kMostDigits)) {
    std::size_t size = 0;
    if (absl::SimpleAtoi(digits, &size)) most = std::max(most, size);
  }
  std::vector<RankFacts> facts;
  for (const std::string& packed : group.Gather(text, most)) facts.push_back(Unpack(packed));
  const std::string difference = FirstDifference(facts);
  return difference.empty() ? absl::OkStatus() : absl::InvalidArgumentError(difference);
}

absl::Status CheckModelsAlike(const absl::StatusOr<std::unique_ptr<Model>>& mine, Group& group) {
  const absl::Status made = FirstFailure(mine.status(), group);
  if (!made.ok()) return made;
  const std::string text = TensorsText(**mine);
  const absl::StatusOr<std::string> of_zero = FromRankZero(text, group);
  if (!of_zero.ok()) return of_zero.status();
  return FirstFailure(CompareTensors(text, *of_zero), group);
}

}  // namespace muster::trainer

#include "trainer/app/training/agreement.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

#include "base/version.h"
#include "trainer/app/options/settings.h"
#include "trainer/compat/torch_version.h"
#include "trainer/io/formats/files.h"

namespace muster::trainer {
namespace {

constexpr std::size_t kMostWords = 2000;  // of a failure's sentence
// Tensors are sent in pieces of this size, to limit the additional GPU memory.
constexpr std::int64_t kPiece = std::int64_t{64} << 20;

// A result as text: its status code, and its sentence or `text`.
std::string Encode(const absl::Status& status, const std::string& text) {
  return absl::StrCat(static_cast<int>(status.code()), " ",
                      status.ok() ? text : std::string(status.message()).substr(0, kMostWords));
}

absl::StatusOr<std::string> Decode(const std::string& encoded) {
  const std::size_t space = std::min(encoded.find(' '), encoded.size());
  const std::string rest = encoded.substr(std::min(space + 1, encoded.size()));
  int code = static_cast<int>(absl::StatusCode::kUnknown);
  if (absl::SimpleAtoi(encoded.substr(0, space), &code) && code == 0) return rest;
  return absl::Status(static_cast<absl::StatusCode>(code), rest);
}

// Fills `part`, bytes on the CPU, with rank `root`'s.
void Broadcast(int root, const at::Tensor& part, Group& group) {
  if (group.size() == 1) return;
  const at::Tensor moved = part.to(group.device());
  group.Broadcast(moved, root, Use::kOther);
  part.copy_(moved);
}

}  // namespace

absl::StatusOr<std::string> FromRank(int root, const absl::StatusOr<std::string>& found,
                                     Group& group) {
  if (group.size() == 1) return found;
  const bool sends = group.rank() == root;
  const std::string size = sends && found.ok() ? absl::StrCat(found->size()) : "";
  const std::vector<std::string> all =
      group.Gather(sends ? Encode(found.status(), size) : "", kMostWords + 10);
  const absl::StatusOr<std::string> announced = Decode(all[static_cast<std::size_t>(root)]);
  if (!announced.ok()) return sends ? found.status() : announced.status();
  std::size_t count = 0;
  if (!absl::SimpleAtoi(*announced, &count)) {
    return absl::InternalError(absl::StrCat("rank ", root, " announced no size"));
  }
  std::string bytes = sends ? *found : std::string(count, 0);
  if (count == 0) return bytes;
  Broadcast(root, at::from_blob(bytes.data(), {static_cast<std::int64_t>(count)}, at::kByte),
            group);
  return bytes;
}

absl::StatusOr<at::Tensor> FileFromRank(int root, const std::string& path, Group& group) {
  const bool sends = group.rank() == root;
  std::unique_ptr<FileSource> file;
  absl::StatusOr<std::string> size = std::string();
  if (sends) {
    absl::StatusOr<std::unique_ptr<FileSource>> opened = FileSource::Open(path);
    if (opened.ok()) file = *std::move(opened);
    size = file ? absl::StatusOr<std::string>(absl::StrCat(file->size())) : opened.status();
  }
  size = FromRank(root, size, group);
  if (!size.ok()) return size.status();
  std::int64_t count = 0;
  if (!absl::SimpleAtoi(*size, &count)) {
    return absl::InternalError(absl::StrCat("rank ", root, " announced no size of ", path));
  }
  const at::Tensor bytes = at::empty({count}, at::kByte);
  absl::Status read;
  for (std::int64_t begin = 0; begin < count; begin += kPiece) {
    const at::Tensor part = bytes.narrow(0, begin, std::min(kPiece, count - begin));
    if (sends && read.ok()) {
      read = file->Read(static_cast<std::uint64_t>(begin), part.data_ptr(), part.nbytes());
    }
    Broadcast(root, part, group);
  }
  // Reported last: a rank that fails midway must still take part in the collectives.
  read =
      FromRank(root, read.ok() ? absl::StatusOr<std::string>(std::string()) : read, group).status();
  if (!read.ok()) return read;
  return bytes;
}

absl::StatusOr<std::vector<std::string>> FromAll(const absl::StatusOr<std::string>& mine,
                                                 std::size_t most, Group& group) {
  std::vector<std::string> all =
      group.Gather(Encode(mine.status(), mine.ok() ? *mine : ""), std::max(most, kMostWords) + 10);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    absl::StatusOr<std::string> decoded = Decode(all[rank]);
    if (decoded.ok()) {
      all[rank] = *std::move(decoded);
    } else if (static_cast<int>(rank) == group.rank()) {
      return mine.status();
    } else {
      return absl::Status(decoded.status().code(),
                          absl::StrCat("on rank ", rank, ": ", decoded.status().message()));
    }
  }
  return all;
}

absl::Status FirstFailure(const absl::Status& mine, Group& group) {
  return FromAll(mine.ok() ? absl::StatusOr<std::string>(std::string()) : mine, 0, group).status();
}

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

// One line per fact. A value may contain line breaks and any other byte.
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

// The parameters and buffers, one per line.
std::string TensorsText(const Model& model) {
  std::string text;
  for (const NamedTensor& named : model.StateDict()) {
    absl::StrAppend(&text, named.name, " of [", absl::StrJoin(named.tensor.sizes().vec(), ", "),
                    "] ", at::toString(named.tensor.scalar_type()),
                    named.tensor.requires_grad() ? "" : " without a gradient", "\n");
  }
  return text;
}

// kInvalidArgument at the first line that differs.
absl::Status CompareTensors(const std::string& mine, const std::string& of_zero) {
  if (mine == of_zero) return absl::OkStatus();
  const std::vector<std::string> here = absl::StrSplit(mine, '\n');
  const std::vector<std::string> there = absl::StrSplit(of_zero, '\n');
  // The last line of each is empty: if one of them is shorter, they differ there.
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

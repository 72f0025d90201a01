#include "trainer/io/state_dict.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "trainer/runtime/failure.h"

namespace muster::trainer {
namespace {

constexpr char kPrefix[] = "module.";
constexpr std::size_t kNamesShown = 8;

bool HasPrefix(const std::string& name) {
  return name.rfind(kPrefix, 0) == 0;
}

std::string WithoutPrefix(const std::string& name) {
  return HasPrefix(name) ? name.substr(sizeof(kPrefix) - 1) : name;
}

// The tensors of `state` with their names in it; `state` is a dict of nothing else.
absl::StatusOr<std::vector<NamedTensor>> TensorsOf(const Value& state) {
  if (state.dict() == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the state dict is of type ", PythonName(state.kind())));
  }
  std::vector<NamedTensor> tensors;
  for (const auto& [key, value] : *state.dict()) {
    const auto* name = std::get_if<std::string>(&key);
    if (name == nullptr || value.tensor() == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("the state dict has ", ToString(key),
                                                     " of type ", PythonName(value.kind()),
                                                     ", not a Tensor with a name"));
    }
    tensors.push_back({*name, *value.tensor()});
  }
  return tensors;
}

// kAutomatic replaced by what it means for these names.
ModulePrefix Decide(ModulePrefix prefix, const std::vector<NamedTensor>& state,
                    const std::vector<NamedTensor>& targets) {
  if (prefix != ModulePrefix::kAutomatic) return prefix;
  const auto all_have = [](const std::vector<NamedTensor>& tensors) {
    return !tensors.empty() && std::all_of(tensors.begin(), tensors.end(),
                                           [](const auto& named) { return HasPrefix(named.name); });
  };
  if (all_have(state) && !all_have(targets)) return ModulePrefix::kStrip;
  if (!all_have(state) && all_have(targets)) return ModulePrefix::kAdd;
  return ModulePrefix::kAsIs;
}

void Rename(ModulePrefix prefix, std::vector<NamedTensor>& state) {
  for (NamedTensor& named : state) {
    if (prefix == ModulePrefix::kAdd) named.name = absl::StrCat(kPrefix, named.name);
    if (prefix == ModulePrefix::kStrip) named.name = WithoutPrefix(named.name);
  }
}

std::string Shape(const at::Tensor& tensor) {
  return absl::StrCat("torch.Size([", absl::StrJoin(tensor.sizes().vec(), ", "), "])");
}

// At most kNamesShown of `names`.
std::string Some(const std::vector<std::string>& names, const char* separator) {
  const std::vector<std::string> shown(
      names.begin(),
      names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kNamesShown)));
  std::string text = absl::StrJoin(shown, separator);
  if (names.size() > kNamesShown) {
    absl::StrAppend(&text, separator, names.size() - kNamesShown, " more");
  }
  return text;
}

std::string Quoted(std::vector<std::string> names) {
  for (std::string& name : names) name = absl::StrCat("\"", name, "\"");
  return Some(names, ", ");
}

}  // namespace

Value StateDictValue(const std::vector<NamedTensor>& tensors) {
  Dict dict(/*ordered=*/true);
  for (const NamedTensor& named : tensors) dict.Append(named.name, named.tensor);
  return dict;
}

absl::StatusOr<const Value*> FindStateDict(const Value& checkpoint) {
  if (TensorsOf(checkpoint).ok()) return &checkpoint;
  for (const char* key : {"model", "state_dict", "model_state_dict"}) {
    const Value* entry = checkpoint.Find(key);
    if (entry != nullptr && TensorsOf(*entry).ok()) return entry;
  }
  return absl::InvalidArgumentError(
      "the checkpoint holds no state dict, neither by itself nor as 'model', 'state_dict' or "
      "'model_state_dict'");
}

std::string LoadStateDictReport::Sentence() const {
  if (complete()) return "All keys matched successfully";
  std::vector<std::string> parts;
  if (!missing.empty()) {
    parts.push_back(absl::StrCat("Missing key(s) in state_dict: ", Quoted(missing), "."));
  }
  if (!unexpected.empty()) {
    parts.push_back(absl::StrCat("Unexpected key(s) in state_dict: ", Quoted(unexpected), "."));
  }
  if (!mismatched.empty()) parts.push_back(Some(mismatched, " "));
  return absl::StrJoin(parts, " ");
}

absl::StatusOr<LoadStateDictReport> LoadStateDict(const Value& state,
                                                  const std::vector<NamedTensor>& targets,
                                                  const LoadStateDictOptions& options) {
  absl::StatusOr<std::vector<NamedTensor>> tensors = TensorsOf(state);
  if (!tensors.ok()) return tensors.status();
  Rename(Decide(options.prefix, *tensors, targets), *tensors);

  // Each is taken out once it has found its target, so that what is left is unexpected.
  std::unordered_map<std::string, at::Tensor> given;
  for (const NamedTensor& named : *tensors) {
    if (!given.emplace(named.name, named.tensor).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("the state dict has ", named.name, " with and without ", kPrefix));
    }
  }
  LoadStateDictReport report;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;  // to, from
  for (const NamedTensor& target : targets) {
    const auto found = given.find(target.name);
    if (found == given.end()) {
      report.missing.push_back(target.name);
      continue;
    }
    const at::Tensor& tensor = found->second;
    if (tensor.sizes() == target.tensor.sizes()) {
      copies.emplace_back(target.tensor, tensor);
    } else {
      report.mismatched.push_back(absl::StrCat(
          "size mismatch for ", target.name, ": copying a param with shape ", Shape(tensor),
          " from checkpoint, the shape in current model is ", Shape(target.tensor), "."));
    }
    given.erase(found);
  }
  for (const NamedTensor& named : *tensors) {  // in the order of the file
    if (given.count(named.name) > 0) report.unexpected.push_back(named.name);
  }
  if (options.strict && !report.complete()) {
    return absl::InvalidArgumentError(report.Sentence());
  }
  try {
    const at::NoGradGuard no_grad;
    for (const auto& [to, from] : copies) to.copy_(from);
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat("load the state dict: ", OneLine(error)));
  }
  return report;
}

}  // namespace muster::trainer

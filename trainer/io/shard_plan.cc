#include "trainer/io/shard_plan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "trainer/io/safetensors.h"

namespace muster::trainer {
namespace {

constexpr std::size_t kDeepestPlace = 100;

// Takes the tensors out of a tree, and leaves their names there.
class TensorTaker {
 public:
  explicit TensorTaker(const Value& checkpoint) : names_(checkpoint) {}

  absl::StatusOr<NamedTree> Take(const Value& value);

  std::vector<NamedTensor> tensors;  // in the order of the tree

 private:
  absl::StatusOr<NamedTree> TakeAt(std::string word, const Value& value);
  absl::StatusOr<NamedTree> TakeTensor(const at::Tensor& tensor);
  absl::StatusOr<NamedTree> TakeItems(const Value& list);
  absl::StatusOr<NamedTree> TakeDict(const Value::Dict& dict);

  TensorNames names_;
  std::vector<std::string> place_;
  std::map<ElementsKey, std::string> known_;
};

absl::StatusOr<NamedTree> TensorTaker::Take(const Value& value) {
  if (place_.size() >= kDeepestPlace) {
    return absl::InvalidArgumentError("lists or dicts are within one another too deeply");
  }
  switch (value.kind()) {
    case ValueKind::kNone:
      return NamedTree();
    case ValueKind::kBool:
      return NamedTree(*value.boolean());
    case ValueKind::kInt:
      return NamedTree(*value.integer());
    case ValueKind::kFloat:
      return NamedTree(*value.floating());
    case ValueKind::kString:
      return NamedTree(*value.string());
    case ValueKind::kTensor:
      return TakeTensor(*value.tensor());
    case ValueKind::kDict:
      return TakeDict(*value.dict());
    default:
      return TakeItems(value);
  }
}

absl::StatusOr<NamedTree> TensorTaker::TakeAt(std::string word, const Value& value) {
  place_.push_back(std::move(word));
  absl::StatusOr<NamedTree> taken = Take(value);
  place_.pop_back();
  return taken;
}

absl::StatusOr<NamedTree> TensorTaker::TakeTensor(const at::Tensor& tensor) {
  const bool plain = tensor.defined() && tensor.layout() == at::kStrided && !tensor.is_quantized();
  if (!plain || !DtypeOf(tensor)) {
    return absl::InvalidArgumentError(absl::StrCat("the tensor ", absl::StrJoin(place_, "."),
                                                   " is not dense, or of a dtype that is not "
                                                   "written"));
  }
  // Those without elements have no memory by which to tell them apart.
  const ElementsKey key = KeyOfElements(tensor);
  const auto same = tensor.numel() > 0 ? known_.find(key) : known_.end();
  if (same != known_.end()) return NamedTree(TensorName{same->second});
  const std::string name = names_.NameAt(place_);
  known_.emplace(key, name);
  tensors.push_back({name, tensor});
  return NamedTree(TensorName{name});
}

absl::StatusOr<NamedTree> TensorTaker::TakeItems(const Value& list) {
  NamedTree::List items;
  for (const Value& item : *list.list()) {
    absl::StatusOr<NamedTree> taken = TakeAt(absl::StrCat(items.size()), item);
    if (!taken.ok()) return taken;
    items.push_back(*std::move(taken));
  }
  if (list.kind() == ValueKind::kTuple) return NamedTree::Tuple(std::move(items));
  return NamedTree(std::move(items));
}

absl::StatusOr<NamedTree> TensorTaker::TakeDict(const Value::Dict& dict) {
  NamedTree::Dict out(dict.ordered());
  for (const auto& [key, item] : dict) {
    std::string word = std::visit([](const auto& plain) { return absl::StrCat(plain); }, key);
    absl::StatusOr<NamedTree> taken = TakeAt(std::move(word), item);
    if (!taken.ok()) return taken;
    out.Append(key, *std::move(taken));
  }
  return NamedTree(std::move(out));
}

}  // namespace

absl::StatusOr<ShardPlan> PlanShards(const Value& checkpoint, int shards) {
  TensorTaker taker(checkpoint);
  absl::StatusOr<NamedTree> tree = taker.Take(checkpoint);
  if (!tree.ok()) return tree.status();
  std::stable_sort(taker.tensors.begin(), taker.tensors.end(), [](const auto& a, const auto& b) {
    return a.tensor.nbytes() > b.tensor.nbytes();
  });

  ShardPlan plan;
  plan.index.tree = *std::move(tree);
  plan.index.files.resize(static_cast<std::size_t>(shards));
  plan.tensors.resize(static_cast<std::size_t>(shards));
  // The shard that has least comes first, and of several the first one.
  using Load = std::pair<std::uint64_t, int>;
  std::priority_queue<Load, std::vector<Load>, std::greater<Load>> loads;
  for (int shard = 0; shard < shards; ++shard) loads.emplace(0, shard);
  for (NamedTensor& named : taker.tensors) {
    const auto [bytes, shard] = loads.top();
    const std::uint64_t more = named.tensor.nbytes();
    loads.pop();
    loads.emplace(bytes + more, shard);
    plan.index.tensor_bytes += more;
    plan.index.shard_of[named.name] = shard;
    plan.tensors[static_cast<std::size_t>(shard)].push_back(std::move(named));
  }
  return plan;
}

TensorNames::TensorNames(const Value& checkpoint) {
  const Value* optimizer = checkpoint.Find("optimizer");
  const Value* groups = optimizer != nullptr ? optimizer->Find("param_groups") : nullptr;
  if (groups == nullptr || groups->list() == nullptr) return;
  for (const Value& group : *groups->list()) {
    const Value* numbers = group.Find("params");
    const Value* names = group.Find("names");
    // What Python's optimizers write has no names: there the numbers remain.
    if (numbers == nullptr || numbers->list() == nullptr || names == nullptr ||
        names->list() == nullptr) {
      continue;
    }
    const std::size_t count = std::min(numbers->list()->size(), names->list()->size());
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t* number = (*numbers->list())[i].integer();
      const std::string* name = (*names->list())[i].string();
      if (number != nullptr && name != nullptr) parameters_[absl::StrCat(*number)] = *name;
    }
  }
}

std::string TensorNames::NameAt(const std::vector<std::string>& place) {
  std::string name;
  if (place.size() > 1 && place[0] == "model") {
    name = absl::StrJoin(place.begin() + 1, place.end(), ".");
  } else if (place.size() == 4 && place[0] == "optimizer" && place[1] == "state") {
    const auto parameter = parameters_.find(place[2]);
    name = absl::StrCat("optimizer.", place[3], ".",
                        parameter != parameters_.end() ? parameter->second : place[2]);
  } else {
    name = place.empty() ? "tensor" : absl::StrJoin(place, ".");
  }
  while (!taken_.insert(name).second) name += '_';
  return name;
}

}  // namespace muster::trainer

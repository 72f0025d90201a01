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

// Takes the tensors out of `checkpoint`, in the order of the tree, and leaves their names there.
absl::StatusOr<NamedTree> TakeTensors(const Value& checkpoint, std::vector<NamedTensor>* tensors) {
  TensorNames names(checkpoint);
  std::map<ElementsKey, std::string> known;
  const auto take = [&](const at::Tensor& tensor,
                        const TreePlace& place) -> absl::StatusOr<NamedTree> {
    std::vector<std::string> words;
    for (const ValueKey& key : place) {
      words.push_back(std::visit([](const auto& plain) { return absl::StrCat(plain); }, key));
    }
    const absl::Status written = DtypeOf(tensor, absl::StrJoin(words, ".")).status();
    if (!written.ok()) return written;
    // Those without elements have no memory by which to tell them apart.
    const ElementsKey key = KeyOfElements(tensor);
    const auto same = tensor.numel() > 0 ? known.find(key) : known.end();
    if (same != known.end()) return NamedTree(TensorName{same->second});
    const std::string name = names.NameAt(words);
    known.emplace(key, name);
    tensors->push_back({name, tensor});
    return NamedTree(TensorName{name});
  };
  return MapTensors<TensorName>(checkpoint, take);
}

}  // namespace

absl::StatusOr<ShardPlan> PlanShards(const Value& checkpoint, int shards) {
  std::vector<NamedTensor> tensors;
  absl::StatusOr<NamedTree> tree = TakeTensors(checkpoint, &tensors);
  if (!tree.ok()) return tree.status();
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
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
  for (NamedTensor& named : tensors) {
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

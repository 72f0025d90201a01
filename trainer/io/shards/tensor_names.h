// What the tensors of a checkpoint are called where they have no tree around them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "trainer/io/value.h"

namespace muster::trainer {

// A model's tensors keep their names, by which other programs find them; those of the rest say
// ahead of it what they are:
//   ['model']['conv1.weight']                     conv1.weight
//   ['ema']['conv1.weight']                       ema.conv1.weight
//   ['optimizer']['state'][0]['momentum_buffer']  optimizer.momentum_buffer.conv1.weight
//   ['other'][1]                                  other.1
// No two tensors have the same name: where these would, the later one in the tree gets a "_" at its
// end.
class TensorNames {
 public:
  explicit TensorNames(const Value& checkpoint);

  // The name of the tensor at `place`: the keys and numbers that lead to it from the root. Call it
  // once for each.
  std::string NameAt(const std::vector<std::string>& place);

 private:
  std::map<std::string, std::string> parameters_;  // of the optimizer, by number
  std::set<std::string> taken_;
};

}  // namespace muster::trainer

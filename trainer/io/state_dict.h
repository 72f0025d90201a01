// Converts a module's tensors to a value, and loads them back.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/io/formats/value_tree.h"
#include "trainer/runtime/named_tensor.h"

namespace muster::trainer {

// The contents of a checkpoint: Python values with LibTorch tensors.

// See value_tree.h for the accessors. A complete checkpoint is one Value:
//
//   Dict checkpoint;
//   checkpoint.Set("model", StateDictValue(model.Parameters()));   // trainer/io/state_dict.h
//   checkpoint.Set("step", std::int64_t{1200});
//   WriteTorchFile(checkpoint, "run.pt");                          // trainer/io/torch_file.h
using Value = BasicValue<at::Tensor>;
using Dict = BasicDict<at::Tensor>;

// An OrderedDict of `tensors`, like module.state_dict(). Shares their elements, so it changes when
// they do.
Value StateDictValue(const std::vector<NamedTensor>& tensors);

// Finds the state dict in a checkpoint: `checkpoint` itself if all its entries are tensors, else
// the dict under "model", "state_dict" or "model_state_dict". kInvalidArgument when there is none.
// The pointer points into `checkpoint`.
absl::StatusOr<const Value*> FindStateDict(const Value& checkpoint);

// How to handle the prefix "module." that Python's DistributedDataParallel adds to each name.
enum class ModulePrefix {
  kAutomatic,  // strips it if all names of the state have it and not all of the targets', and adds
               // it in the opposite case
  kAdd,        // adds it to each name of the state
  kStrip,      // strips it, once, from each name of the state that has it
  kAsIs,
};

struct LoadStateDictOptions {
  ModulePrefix prefix = ModulePrefix::kAutomatic;
  // If false, loads what fits and reports what does not. Unlike in Python, this includes tensors of
  // another shape.
  bool strict = true;
};

struct LoadStateDictReport {
  std::vector<std::string> missing;     // targets that the state lacks
  std::vector<std::string> unexpected;  // names in the state without a target
  std::vector<std::string> mismatched;  // Python's sentence for each target of another shape

  bool complete() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }
  // One line in Python's words, with at most eight names of each kind: 'Missing key(s) in
  // state_dict: "a", "b". Unexpected key(s) in state_dict: "c".' If complete: "All keys matched
  // successfully".
  std::string Sentence() const;
};

// Copies the tensors of `state`, a dict of tensors, into the `targets` with the same names.
// Converts them to each target's dtype and device; autograd does not record it. kInvalidArgument,
// with no target changed, when `state` is not a dict of tensors or, if options.strict, when the
// report is not complete; the message then has the report's sentence.
absl::StatusOr<LoadStateDictReport> LoadStateDict(const Value& state,
                                                  const std::vector<NamedTensor>& targets,
                                                  const LoadStateDictOptions& options = {});

}  // namespace muster::trainer

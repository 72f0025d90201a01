// A module's tensors as a value, and back into the module.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/io/value.h"
#include "trainer/named_tensor.h"

namespace muster::trainer {

// An OrderedDict of `tensors` as module.state_dict() gives it. Shares their elements: what is
// written later is what they hold then.
Value StateDictValue(const std::vector<NamedTensor>& tensors);

// The state dict within a checkpoint: `checkpoint` itself if all its entries are tensors, else the
// dict under "model", "state_dict" or "model_state_dict". kInvalidArgument when there is none. The
// pointer is into `checkpoint`.
absl::StatusOr<const Value*> FindStateDict(const Value& checkpoint);

// What is done about the "module." that DistributedDataParallel puts ahead of each name in Python.
enum class ModulePrefix {
  kAutomatic,  // strips it if all names of the state have it and not all of the targets', and adds
               // it in the opposite case
  kAdd,        // adds it to each name of the state
  kStrip,      // strips it, once, from each name of the state that has it
  kAsIs,
};

struct LoadStateDictOptions {
  ModulePrefix prefix = ModulePrefix::kAutomatic;
  // False: what fits is loaded, and the report tells what does not. Unlike Python this goes for
  // tensors of another shape, too.
  bool strict = true;
};

struct LoadStateDictReport {
  std::vector<std::string> missing;     // targets that the state does not have
  std::vector<std::string> unexpected;  // names of the state that no target has
  std::vector<std::string> mismatched;  // Python's sentence for each target of another shape

  bool complete() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }
  // One line in Python's words, at most eight names of each kind: 'Missing key(s) in state_dict:
  // "a", "b". Unexpected key(s) in state_dict: "c".'; "All keys matched successfully" if complete.
  std::string Sentence() const;
};

// Copies the tensors of `state`, a dict of tensors, into `targets` of the same names, converting to
// each target's dtype and device; gradients are not recorded. kInvalidArgument when `state` is
// something else, and, if options.strict, with the report's sentence when it is not complete; then
// no target was changed.
absl::StatusOr<LoadStateDictReport> LoadStateDict(const Value& state,
                                                  const std::vector<NamedTensor>& targets,
                                                  const LoadStateDictOptions& options = {});

}  // namespace muster::trainer

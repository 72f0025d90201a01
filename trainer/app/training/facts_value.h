// What a checkpoint says of the data that its model was trained with.
#pragma once

#include <string>

#include "absl/status/statusor.h"

#include "trainer/data/data_facts.h"
#include "trainer/io/value.h"

namespace muster::trainer {

// Adds to `checkpoint` what `facts` has:
//   normalization {"mean": [...], "deviation": [...], "columns": [...]}, the last one of tables
//   classes       ["cat", "dog"], the names by their numbers
void SetFacts(const DataFacts& facts, Dict& checkpoint);

// The inverse. What an older checkpoint, or a state dict, does not have is empty. kInvalidArgument,
// with one clause, when it is not as SetFacts() writes it.
absl::StatusOr<DataFacts> ReadFacts(const Value& checkpoint);

// The facts as text for another process, and back; nothing is rounded. `text` must be from
// PackFacts().
std::string PackFacts(const DataFacts& facts);
DataFacts UnpackFacts(const std::string& text);

}  // namespace muster::trainer

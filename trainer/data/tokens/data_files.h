// Finds the files that the user's paths name.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::trainer {

// Returns the files that `paths` name, in that order. A directory stands for the files directly in
// it whose names end with `ending`, sorted by name, without hidden and empty ones. Any other path
// stands for itself, whether or not there is such a file. kInvalidArgument and one sentence for a
// directory that cannot be read or has no such file.
absl::StatusOr<std::vector<std::string>> ListFiles(const std::vector<std::string>& paths,
                                                   const std::string& ending);

struct TokenFiles {
  std::vector<std::string> train;
  std::vector<std::string> test;  // may be empty
};

// The same for files of tokens, in nanoGPT's layout: a directory with a train.bin stands for that
// file alone, other directories for their .bin files, and each val.bin beside a train.bin is the
// test split.
absl::StatusOr<TokenFiles> ListTokenFiles(const std::vector<std::string>& paths);

}  // namespace muster::trainer

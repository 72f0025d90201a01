// What has been learned of a data set before training on it, and what a trained model has to be
// told the next time.
#pragma once

#include <string>
#include <vector>

namespace muster::trainer {

// The mean and standard deviation of each channel, for pixels in [0, 1], or of each column of a
// table.
struct Normalization {
  std::vector<double> mean;
  std::vector<double> deviation;

  bool empty() const { return mean.empty(); }
  bool operator==(const Normalization&) const = default;
};

// Kept in checkpoints. A part that a kind of data does not have is empty.
struct DataFacts {
  Normalization normalization;       // of the inputs
  std::vector<std::string> columns;  // of a table's numbers, in the order of the inputs
  // The names of folders, or the values of a table's target, by the numbers of their classes.
  std::vector<std::string> classes;

  bool operator==(const DataFacts&) const = default;
};

}  // namespace muster::trainer

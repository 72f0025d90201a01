// The user's choice of a data set.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/samples/sample_order.h"
#include "trainer/data/samples/token_windows.h"

namespace muster::trainer {

// What has been measured of a data set before training, and must be reused with the trained model.

// The mean and standard deviation of each channel, for pixels in [0, 1], or of each column of a
// table.
struct Normalization {
  std::vector<double> mean;
  std::vector<double> deviation;

  bool empty() const { return mean.empty(); }
  bool operator==(const Normalization&) const = default;
};

// Stored in checkpoints. A part that does not apply to a kind of data is empty.
struct DataFacts {
  Normalization normalization;       // of the inputs
  std::vector<std::string> columns;  // of a table's numeric columns, in input order
  // The names of folders, or the values of a table's target, by class number.
  std::vector<std::string> classes;

  bool operator==(const DataFacts&) const = default;
};

struct DataOptions {
  // For --data: one directory for images; one file for a table; files and directories of files for
  // text and tokens.
  std::vector<std::string> paths;
  AugmentationOptions augmentation;  // for training images

  std::int64_t image_size = 64;  // for folders of images: their height and width, in pixels
  std::string target;            // for tables: the name of the class column

  // For text and tokens: the number of tokens in a sample.
  std::int64_t context = 128;
  // For text and tokens: seeds each epoch's shift. For folders and tables: seeds the choice of the
  // test share.
  std::uint64_t seed = 0;
  // The test split, named in the same way as `paths`. If empty: for tokens each val.bin next to a
  // train.bin, for a folder of images its val or test, and otherwise a share of the data: for text
  // and tokens the end, else drawn with `seed`.
  std::vector<std::string> test_paths;
  // The one of them that images and tables have; empty: none.
  std::string test_path() const { return test_paths.empty() ? "" : test_paths.front(); }
  double test_share = 0.1;
  // Path of a tokenizer.json; empty: none, and text is read as bytes.
  std::string tokenizer;
  // The number of different tokens; 0: as many as the tokenizer has. Tokens need one of the two.
  std::int64_t vocabulary = 0;
  // The type in files of tokens. nullopt: uint16 if the vocabulary fits, else uint32.
  std::optional<TokenType> token_type;

  // From the training of the model that this data is for: read in the same way. Empty for a
  // training, and for a model whose file lacks it.
  DataFacts known;
  // With `known` classes: whether each sample must have one of them. If not, a sample of another
  // class gets a number after theirs, and a table may lack the target column.
  bool labels_needed = true;
  // No share is held out: without a separate test split, both splits have all samples.
  bool undivided = false;
};

// The shape of a data set's samples, which a model has to fit.

// The number of different tokens if a token is a byte.
inline constexpr std::int64_t kByteVocabulary = 256;

struct DataShape {
  enum class Kind {
    kImages,
    kText,
    kTable,    // rows of numbers, each with a class
    kSamples,  // from a recipe's own data set: only its model knows their shape
  };
  Kind kind = Kind::kImages;

  // For images. A table row is an image of one line: `width` columns, the rest 1.
  std::int64_t channels = 1;
  std::int64_t height = 28;
  std::int64_t width = 28;
  // For images and tables: the number of classes. For text: the number of different tokens,
  // kByteVocabulary for bytes.
  std::int64_t classes = 10;
  // For text: the number of tokens in a window.
  std::int64_t context = 0;
};

// What samples are called: "images", "windows", "rows", "samples".
inline const char* SampleUnit(DataShape::Kind kind) {
  switch (kind) {
    case DataShape::Kind::kImages:
      return "images";
    case DataShape::Kind::kText:
      return "windows";
    case DataShape::Kind::kTable:
      return "rows";
    case DataShape::Kind::kSamples:
      return "samples";
  }
  return "";
}

// The names of classes, and their numbers.

// `name` in a form that a checkpoint and JSON can store: unchanged if it is UTF-8, else with "\xe9"
// for each byte that is not ASCII.
std::string ReadableName(const std::string& name);

// Appends those of `found` that are not in `classes` yet, in their order. Existing numbers do not
// change.
void AddClasses(const std::vector<std::string>& found, std::vector<std::string>& classes);

// The number of each class: its position in `classes`.
std::map<std::string, std::int64_t> NumbersOf(const std::vector<std::string>& classes);

// Why the first class after the `known` ones, if there is one, cannot be measured: "the model does
// not know the class 'owl', only cat, dog". Empty if all are known.
std::string UnknownClass(const std::vector<std::string>& known,
                         const std::vector<std::string>& classes);

}  // namespace muster::trainer

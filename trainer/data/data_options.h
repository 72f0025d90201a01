// What the user asks for in a data set.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/data_facts.h"
#include "trainer/data/loading/augmentation.h"
#include "trainer/data/tokens/token_range.h"

namespace muster::trainer {

struct DataOptions {
  // Of --data: one directory for images; one file for a table; files and directories of files for
  // text and tokens.
  std::vector<std::string> paths;
  AugmentationOptions augmentation;  // for training images

  std::int64_t image_size = 64;  // for folders of images: their height and width, in pixels
  std::string target;            // for tables: the name of the column that holds the classes

  // For text and tokens: the number of tokens in a sample.
  std::int64_t context = 128;
  // For text and tokens: of each epoch's shift. For folders and tables: of the share to test on.
  std::uint64_t seed = 0;
  // The test split, named in the same way as `paths`. If empty: for tokens each val.bin beside a
  // train.bin, for a folder of images its val or test, and without one a share of the data: of text
  // and tokens the end, else drawn with `seed`.
  std::vector<std::string> test_paths;
  double test_share = 0.1;
  // Path of a tokenizer.json; empty: none, and text is read as bytes.
  std::string tokenizer;
  // The number of different tokens; 0: as many as the tokenizer has. Tokens need one of the two.
  std::int64_t vocabulary = 0;
  // How files of tokens are written. nullopt: uint16 if the vocabulary fits, else uint32.
  std::optional<TokenType> token_type;

  // Of the data that a model was trained with which is to see this data, too: it is read in the
  // same way. Empty for a training, and of a model whose file does not say.
  DataFacts known;
  // With the classes of `known`: whether each sample needs one of them. If not, a sample of another
  // class has a number behind theirs, and a table may lack the column of its target.
  bool labels_needed = true;
  // No share is held out: without a test split of its own, all samples of the data are both splits.
  bool undivided = false;
};

}  // namespace muster::trainer

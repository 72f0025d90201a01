// The data set that the user asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/loading/augmentation.h"
#include "trainer/data/tokens/token_range.h"

namespace muster::trainer {

enum class DataKind {
  kIdx,            // MNIST's or Fashion-MNIST's four IDX files in a directory
  kCifar10,        // CIFAR-10's binary files in a directory
  kText,           // text files, as bytes or encoded by a tokenizer
  kTokens,         // files of tokens
  kGenerated,      // 2050 training and 500 test images, generated in memory
  kGeneratedText,  // 256 KiB of text, generated in memory
};

struct DataOptions {
  DataKind kind = DataKind::kIdx;
  // One directory for images; files and directories of files for text and tokens.
  std::vector<std::string> paths = {"/usr/share/datasets/fashion-mnist"};
  AugmentationOptions augmentation;  // for training images

  // For text and tokens: the number of tokens in a sample, and the seed for each epoch's shift.
  std::int64_t context = 128;
  std::uint64_t seed = 0;
  // The test split, named in the same way as `paths`. If empty: for tokens each val.bin beside a
  // train.bin, and without one the share at the end of the data.
  std::vector<std::string> test_paths;
  double test_share = 0.1;
  // Path of a tokenizer.json; empty: none, and text is read as bytes.
  std::string tokenizer;
  // The number of different tokens; 0: as many as the tokenizer has. Tokens need one of the two.
  std::int64_t vocabulary = 0;
  // How files of tokens are written. nullopt: uint16 if the vocabulary fits, else uint32.
  std::optional<TokenType> token_type;
};

}  // namespace muster::trainer

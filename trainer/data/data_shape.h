// The shape of a data set's samples, which a model has to fit.
#pragma once

#include <cstdint>

namespace muster::trainer {

// The number of different tokens where a token is a byte.
inline constexpr std::int64_t kByteVocabulary = 256;

struct DataShape {
  enum class Kind {
    kImages,
    kText,
    kTable,    // rows of numbers, each with a class
    kSamples,  // of a recipe's own data set: only its model knows what they are
  };
  Kind kind = Kind::kImages;

  // For images. A row of a table is an image of one line: `width` columns, the rest 1.
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

}  // namespace muster::trainer

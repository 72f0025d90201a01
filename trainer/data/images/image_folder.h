// Finds the images of a folder, with the class of each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::trainer {

// A path, and its class as an index into the names of all classes.
struct ImageFile {
  std::string path;
  std::int64_t label = 0;
};

struct ImageListOptions {
  std::string directory;
  std::string test_directory;  // empty: val/ or test/ in `directory`, else a share of the images
  double test_share = 0.1;
  std::uint64_t seed = 0;  // for the share
  // As in DataOptions.
  std::vector<std::string> known_classes;
  bool labels_needed = true;
  bool undivided = false;
};

struct ImageFolder {
  // Sorted by their bytes, at least two; or those that are known, and behind them those that are
  // not. As ReadableName.
  std::vector<std::string> classes;
  // Sorted by the folders of their classes and then by path. `test` is empty if there is no such
  // split: all images are in `train`, which is never empty.
  std::vector<ImageFile> train;
  std::vector<ImageFile> test;
};

// Lists `directory`, laid out as for torchvision's ImageFolder: train/CLASS/... for training and
// val/CLASS/... (or else test/CLASS/...) for testing. If `test_directory` is not empty, it is that
// of the test's classes. Where there is no test split, or no train/ either and the classes lie in
// `directory` itself, `test_share` of all images, at least one, is held out: which, depends on
// their number and on `seed` alone. Unless it is to be `undivided`.
//
// A class is a folder; its images are the files in it and in folders below, at any depth, whose
// names end with .jpg, .jpeg or .png in small or capital letters. Names that begin with a dot are
// left out. No file is opened. The result is the same wherever the same files are. Classes that are
// known have the numbers that they had in the training, however few of them there are.
//
// kInvalidArgument and one sentence when a directory cannot be read, there are fewer than two
// classes, a class has no image, the test has a class that the training has not, or one that is
// needed is not known.
absl::StatusOr<ImageFolder> ListImageFolder(const ImageListOptions& options);

}  // namespace muster::trainer

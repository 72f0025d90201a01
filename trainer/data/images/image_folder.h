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

struct ImageFolder {
  std::vector<std::string> classes;  // sorted by their bytes; at least two
  // Sorted by class and then by path; not empty.
  std::vector<ImageFile> train;
  std::vector<ImageFile> test;
};

// Lists `directory`, laid out as for torchvision's ImageFolder: train/CLASS/... for training and
// val/CLASS/... (or else test/CLASS/...) for testing. If `test_directory` is not empty, it is that
// of the test's classes. Where there is no test split, or no train/ either and the classes lie in
// `directory` itself, `test_share` of all images, at least one, is held out: which, depends on
// their number and on `seed` alone.
//
// A class is a folder; its images are the files in it and in folders below, at any depth, whose
// names end with .jpg, .jpeg or .png in small or capital letters. Names that begin with a dot are
// left out. No file is opened. The result is the same wherever the same files are.
//
// kInvalidArgument and one sentence when a directory cannot be read, there are fewer than two
// classes, a class has no image, or the test has a class that the training has not.
absl::StatusOr<ImageFolder> ListImageFolder(const std::string& directory,
                                            const std::string& test_directory, double test_share,
                                            std::uint64_t seed);

}  // namespace muster::trainer

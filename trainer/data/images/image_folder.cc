#include "trainer/data/images/image_folder.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "trainer/data/datasets/unreadable.h"
#include "trainer/data/loading/holdout.h"

namespace muster::trainer {
namespace {

namespace fs = std::filesystem;

bool IsHidden(const fs::path& path) {
  return path.filename().native().starts_with('.');
}

bool IsImageName(const fs::path& path) {
  const std::string ending = absl::AsciiStrToLower(path.extension().native());
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

bool IsFolder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// The names of the folders in `directory`, sorted.
absl::StatusOr<std::vector<std::string>> ListClasses(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!IsHidden(entry->path()) && IsFolder(entry->path())) {
      names.push_back(entry->path().filename().native());
    }
  }
  if (error) return Unreadable(directory.native(), error.message());
  std::sort(names.begin(), names.end());
  return names;
}

// The images in `folder` and below, sorted.
absl::StatusOr<std::vector<std::string>> ListImages(const fs::path& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (IsHidden(entry->path())) {
      entry.disable_recursion_pending();
    } else if (IsImageName(entry->path()) && !IsFolder(entry->path())) {
      paths.push_back(entry->path().native());
    }
  }
  if (error) return Unreadable(folder.native(), error.message());
  if (paths.empty()) {
    return Unreadable(folder.native(),
                      "a class without an image; there is no .jpg, .jpeg or .png file in it");
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// The images of the folders in `directory`, whose names must be among `classes`.
absl::StatusOr<std::vector<ImageFile>> ListSplit(const fs::path& directory,
                                                 const std::vector<std::string>& classes) {
  const auto names = ListClasses(directory);
  if (!names.ok()) return names.status();
  if (names->empty()) {
    return Unreadable(directory.native(), "it has no folders, and each class is one");
  }
  std::vector<ImageFile> files;
  for (const std::string& name : *names) {
    const auto found = std::lower_bound(classes.begin(), classes.end(), name);
    if (found == classes.end() || *found != name) {
      return Unreadable((directory / name).native(),
                        "a class that the images to train on do not have");
    }
    absl::StatusOr<std::vector<std::string>> paths = ListImages(directory / name);
    if (!paths.ok()) return paths.status();
    for (std::string& path : *paths) files.push_back({std::move(path), found - classes.begin()});
  }
  return files;
}

// Where the classes to test on lie; empty: nowhere.
fs::path TestFolder(const fs::path& directory, const std::string& test_directory) {
  if (!test_directory.empty()) return test_directory;
  if (!IsFolder(directory / "train")) return {};
  for (const char* name : {"val", "test"}) {
    if (IsFolder(directory / name)) return directory / name;
  }
  return {};
}

}  // namespace

absl::StatusOr<ImageFolder> ListImageFolder(const std::string& directory,
                                            const std::string& test_directory, double test_share,
                                            std::uint64_t seed) {
  const fs::path root(directory);
  if (!IsFolder(root)) {
    return absl::InvalidArgumentError(
        absl::StrCat("read data from ", directory, ": no such directory"));
  }
  const fs::path train = IsFolder(root / "train") ? root / "train" : root;
  absl::StatusOr<std::vector<std::string>> classes = ListClasses(train);
  if (!classes.ok()) return classes.status();
  if (classes->size() < 2) {
    return Unreadable(train.native(),
                      absl::StrCat("it has ", classes->empty() ? "no folders" : "one folder",
                                   ", and a folder for each of two or more classes is needed"));
  }
  ImageFolder folder{.classes = *std::move(classes), .train = {}, .test = {}};
  absl::StatusOr<std::vector<ImageFile>> files = ListSplit(train, folder.classes);
  if (!files.ok()) return files.status();
  if (const fs::path apart = TestFolder(root, test_directory); !apart.empty()) {
    folder.train = *std::move(files);
    files = ListSplit(apart, folder.classes);
    if (!files.ok()) return files.status();
    folder.test = *std::move(files);
    return folder;
  }
  const std::vector<bool> held_out =
      HoldOut(static_cast<std::int64_t>(files->size()), test_share, seed);
  for (std::size_t i = 0; i < files->size(); ++i) {
    (held_out[i] ? folder.test : folder.train).push_back(std::move((*files)[i]));
  }
  return folder;
}

}  // namespace muster::trainer

#include "trainer/data/images/image_folder.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "trainer/data/class_names.h"
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

// The images of the folders in `directory`, whose names are added to `classes`.
absl::StatusOr<std::vector<ImageFile>> ListSplit(const fs::path& directory,
                                                 std::vector<std::string>& classes) {
  const auto folders = ListClasses(directory);
  if (!folders.ok()) return folders.status();
  if (folders->empty()) {
    return Unreadable(directory.native(), "it has no folders, and each class is one");
  }
  std::vector<std::string> names;
  for (const std::string& folder : *folders) names.push_back(ReadableName(folder));
  AddClasses(names, classes);
  const std::map<std::string, std::int64_t> numbers = NumbersOf(classes);
  std::vector<ImageFile> files;
  for (std::size_t i = 0; i < names.size(); ++i) {
    absl::StatusOr<std::vector<std::string>> paths = ListImages(directory / (*folders)[i]);
    if (!paths.ok()) return paths.status();
    for (std::string& path : *paths) files.push_back({std::move(path), numbers.at(names[i])});
  }
  return files;
}

// kInvalidArgument when a class of `directory` that is needed is not known.
absl::Status CheckKnown(const ImageListOptions& options, const std::string& directory,
                        const std::vector<std::string>& classes) {
  const std::string unknown = UnknownClass(options.known_classes, classes);
  if (options.known_classes.empty() || !options.labels_needed || unknown.empty()) {
    return absl::OkStatus();
  }
  return Unreadable(directory, absl::StrCat(unknown, "; leave its folder out"));
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

absl::StatusOr<ImageFolder> ListImageFolder(const ImageListOptions& options) {
  const fs::path root(options.directory);
  if (!IsFolder(root)) {
    return absl::InvalidArgumentError(
        absl::StrCat("read data from ", options.directory, ": no such directory"));
  }
  const fs::path train = IsFolder(root / "train") ? root / "train" : root;
  const bool known = !options.known_classes.empty();
  if (const auto found = ListClasses(train); !found.ok()) {
    return found.status();
  } else if (!known && found->size() < 2) {
    return Unreadable(train.native(),
                      absl::StrCat("it has ", found->empty() ? "no folders" : "one folder",
                                   ", and a folder for each of two or more classes is needed"));
  }
  ImageFolder folder{.classes = options.known_classes, .train = {}, .test = {}};
  absl::StatusOr<std::vector<ImageFile>> files = ListSplit(train, folder.classes);
  if (!files.ok()) return files.status();
  absl::Status checked = CheckKnown(options, train.native(), folder.classes);
  if (!checked.ok()) return checked;
  if (const fs::path apart = TestFolder(root, options.test_directory); !apart.empty()) {
    folder.train = *std::move(files);
    const std::size_t of_train = folder.classes.size();
    files = ListSplit(apart, folder.classes);
    if (!files.ok()) return files.status();
    if (!known && folder.classes.size() > of_train) {
      return Unreadable((apart / folder.classes[of_train]).native(),
                        "a class that the images to train on do not have");
    }
    checked = CheckKnown(options, apart.native(), folder.classes);
    if (!checked.ok()) return checked;
    folder.test = *std::move(files);
    return folder;
  }
  if (options.undivided) {
    folder.train = *std::move(files);
    return folder;
  }
  const std::vector<bool> held_out =
      HoldOut(static_cast<std::int64_t>(files->size()), options.test_share, options.seed);
  for (std::size_t i = 0; i < files->size(); ++i) {
    (held_out[i] ? folder.test : folder.train).push_back(std::move((*files)[i]));
  }
  return folder;
}

}  // namespace muster::trainer

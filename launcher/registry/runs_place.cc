#include "launcher/registry/runs_place.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/random_name.h"
#include "base/safe_path.h"
#include "base/unique_fd.h"

namespace muster::launcher {
namespace {

std::string WithoutSlash(std::string directory) {
  // A link would be followed behind which a slash stands.
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  return directory;
}

// The names in the directory that begin with `prefix` and are directories of this user.
std::vector<std::string> OwnDirectories(const std::string& parent, const std::string& prefix) {
  std::vector<std::string> names;
  const absl::StatusOr<base::UniqueFd> place = base::OpenDirectory(parent);
  if (!place.ok()) return names;
  base::UniqueFd readable(openat(place->get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!readable.valid()) return names;
  // Takes the descriptor over.
  DIR* const stream = fdopendir(readable.release());
  if (stream == nullptr) return names;
  while (const dirent* const entry = readdir(stream)) {
    struct stat info = {};
    if (absl::StartsWith(entry->d_name, prefix) &&
        fstatat(dirfd(stream), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISDIR(info.st_mode) && info.st_uid == geteuid()) {
      names.emplace_back(entry->d_name);
    }
  }
  closedir(stream);
  // So that those who start now and later choose the same.
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

RunsPlace RunsPlaceOf(const Environment& environment) {
  return {.chosen = WithoutSlash(GetOr(environment, "MUSTER_RUNS_DIR", "")),
          .runtime = WithoutSlash(GetOr(environment, "XDG_RUNTIME_DIR", ""))};
}

std::vector<std::string> RunsDirs(const RunsPlace& place) {
  constexpr int kRandom = 12;
  if (!place.chosen.empty()) return {place.chosen};
  std::vector<std::string> dirs;
  if (!place.runtime.empty()) dirs.push_back(place.runtime + "/muster");

  const std::string former = absl::StrCat("muster-", geteuid());
  const std::string prefix = former + "-";
  const std::vector<std::string> own = OwnDirectories(place.temp, prefix);
  for (const std::string& name : own) dirs.push_back(absl::StrCat(place.temp, "/", name));
  if (own.empty()) {
    dirs.push_back(absl::StrCat(place.temp, "/", prefix, base::RandomName(kRandom)));
  }

  const std::string usual = absl::StrCat("/run/user/", geteuid(), "/muster");
  if (std::find(dirs.begin(), dirs.end(), usual) == dirs.end()) dirs.push_back(usual);

  struct stat info = {};
  const std::string before = absl::StrCat(place.temp, "/", former);
  if (lstat(before.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid()) {
    dirs.push_back(before);
  }
  return dirs;
}

}  // namespace muster::launcher

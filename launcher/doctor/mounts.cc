#include "launcher/doctor/mounts.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace muster::launcher {
namespace {

bool IsBelow(const std::string& path, const std::string& point) {
  return point == "/" || path == point || absl::StartsWith(path, absl::StrCat(point, "/"));
}

}  // namespace

// "36 35 98:0 / /mnt/data rw,noatime master:1 - nfs4 server:/data rw" (man 5 proc).
Mount MountOf(const std::string& path, const std::string& mountinfo) {
  Mount mount;
  for (const absl::string_view line : absl::StrSplit(mountinfo, '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 7 || dash == words.end() || dash + 1 == words.end()) continue;
    const std::string point = absl::StrReplaceAll(
        words[4], {{"\\040", " "}, {"\\011", "\t"}, {"\\012", "\n"}, {"\\134", "\\"}});
    // What was mounted later at the same place hides what was there.
    if (IsBelow(path, point) && point.size() >= mount.point.size()) mount = {point, *(dash + 1)};
  }
  return mount;
}

}  // namespace muster::launcher

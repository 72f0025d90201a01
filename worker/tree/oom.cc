#include "worker/tree/oom.h"

#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster::worker {
namespace {

// v1 has no word for "no limit"; it shows a number that no machine has as memory.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;

// The number after "oom_kill " in memory.events or memory.oom_control; nothing where a file, or an
// old kernel, does not have it.
std::optional<std::uint64_t> CountIn(const std::string& path) {
  const std::string text = ReadSmallFile(path);
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::pair<absl::string_view, absl::string_view> entry =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    std::uint64_t count = 0;
    if (entry.first == "oom_kill" && absl::SimpleAtoi(entry.second, &count)) return count;
  }
  return std::nullopt;
}

// The files of a group, in the words of its version.
std::string CountFile(const CgroupPath& group, bool is_v2) {
  return group.directory + (is_v2 ? "/memory.events" : "/memory.oom_control");
}

std::optional<std::uint64_t> LimitOf(const CgroupPath& group, bool is_v2) {
  const std::string text =
      ReadSmallFile(group.directory + (is_v2 ? "/memory.max" : "/memory.limit_in_bytes"));
  std::uint64_t bytes = 0;
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(text), &bytes) || bytes >= kNoLimit) {
    return std::nullopt;
  }
  return bytes;
}

std::string Size(std::uint64_t bytes) {
  constexpr std::uint64_t kMiB = 1024 * 1024;
  if (bytes % (1024 * kMiB) == 0) return absl::StrCat(bytes / (1024 * kMiB), " GiB");
  if (bytes >= kMiB) return absl::StrCat(bytes / kMiB, " MiB");
  return absl::StrCat(bytes / 1024, " KiB");
}

}  // namespace

OomWatch::OomWatch(const std::optional<CgroupPath>& v2, const std::optional<CgroupPath>& v1) {
  // The memory controller belongs to one version at a time. In v2 it may be enabled only above us.
  for (std::optional<CgroupPath> group = v2; group.has_value(); group = group->Parent()) {
    if (!CountIn(CountFile(*group, true)).has_value()) continue;
    group_ = group;
    is_v2_ = true;
    break;
  }
  if (!group_.has_value() && v1.has_value() && CountIn(CountFile(*v1, false)).has_value()) {
    group_ = v1;
  }
  explained_ = Count();
}

bool OomWatch::ExplainsOneMore() {
  if (Count() <= explained_) return false;
  ++explained_;
  return true;
}

std::string OomWatch::Describe() const {
  for (std::optional<CgroupPath> group = group_; group.has_value(); group = group->Parent()) {
    if (const std::optional<std::uint64_t> limit = LimitOf(*group, is_v2_)) {
      return absl::StrCat("by the kernel's out-of-memory killer (memory limit ", Size(*limit),
                          " of cgroup ", group->Name(), ")");
    }
  }
  return "by the kernel's out-of-memory killer (the node's memory was used up)";
}

std::uint64_t OomWatch::Count() const {
  return group_.has_value() ? CountIn(CountFile(*group_, is_v2_)).value_or(0) : 0;
}

}  // namespace muster::worker

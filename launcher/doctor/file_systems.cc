#include "launcher/doctor/machine.h"

#include <fcntl.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

#include "base/failure.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "launcher/doctor/bounded_look.h"
#include "rendezvous/net/find_credentials.h"
#include "worker/process/process_info.h"

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
    // A later mount at the same point hides the earlier one.
    if (IsBelow(path, point) && point.size() >= mount.point.size()) mount = {point, *(dash + 1)};
  }
  return mount;
}

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr std::uint64_t kFewFilesLeft = 1000;
constexpr milliseconds kSlowDisk(2000);
constexpr long kTmpfs = 0x01021994;
constexpr long kRamfs = static_cast<long>(0x858458f6);

// Linux, include/uapi/linux/magic.h, and the file systems' own sources.
constexpr std::pair<long, const char*> kTypes[] = {
    {kTmpfs, "tmpfs"},     {kRamfs, "ramfs"},       {0xEF53, "ext4"},       {0x58465342, "xfs"},
    {0x9123683E, "btrfs"}, {0x794c7630, "overlay"}, {0x6969, "nfs"},        {0xFF534D42, "cifs"},
    {0xFE534D42, "smb"},   {0x00C36400, "ceph"},    {0x0BD00BD0, "lustre"}, {0x47504653, "gpfs"},
    {0x65735546, "fuse"},  {0x19830326, "beegfs"},  {0x2FC12FC1, "zfs"},    {0x01021997, "9p"}};

std::string TypeName(long type) {
  for (const auto& [magic, name] : kTypes) {
    if (magic == type) return name;
  }
  return absl::StrFormat("type %#x", type);
}

const char* UseName(DirectoryUse use) {
  switch (use) {
    case DirectoryUse::kLogs:
      return "log directory";
    case DirectoryUse::kTemporary:
      return "temporary files";
    case DirectoryUse::kCheckpoints:
      break;
  }
  return "checkpoints";
}

const char* WhyWritten(DirectoryUse use) {
  switch (use) {
    case DirectoryUse::kLogs:
      return "Muster writes the logs and error files of its workers there, and does not start "
             "where it cannot.";
    case DirectoryUse::kTemporary:
      return "Muster, Python and the compilers of PyTorch write there as a job starts.";
    case DirectoryUse::kCheckpoints:
      break;
  }
  return "A checkpoint that cannot be written is noticed hours after the start, and the work since "
         "the previous one is lost.";
}

std::string Trial(const std::string& directory) {
  base::UniqueFd file(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file.valid() && (errno == EOPNOTSUPP || errno == EISDIR)) {
    // NFS and some others do not support O_TMPFILE.
    std::string name = directory + "/.muster-doctor-XXXXXX";
    file.reset(::mkostemp(name.data(), O_CLOEXEC));
    if (file.valid()) ::unlink(name.c_str());
  }
  if (!file.valid()) return base::SystemCause();
  const std::array<char, 4096> page = {};
  if (::write(file.get(), page.data(), page.size()) != static_cast<ssize_t>(page.size()) ||
      ::fsync(file.get()) != 0) {
    return base::SystemCause();
  }
  return "";
}

// Prefixes of what the child reports while it looks.
enum class Fact : char {
  kAt = '@',        // the path it touches next; links are resolved
  kExisting = 'e',  // Directory::existing
  kSystem = 's',    // the numbers of statfs()
  kTrouble = 't',
  kTook = 'm',  // ms
};

std::string FactText(Fact fact, absl::string_view value) {
  return absl::StrCat(std::string(1, static_cast<char>(fact)), value);
}

// Resolves `path` as far as it exists. Reports each part before touching it.
std::filesystem::path Follow(const std::filesystem::path& path, const Say& say) {
  constexpr int kMostLinks = 40;
  std::deque<std::string> rest;
  for (const auto& part : path) rest.push_back(part);
  std::filesystem::path at = "/";
  for (int links = 0; !rest.empty();) {
    const std::string part = std::move(rest.front());
    rest.pop_front();
    if (part == "/" || part == "." || part.empty()) continue;
    const std::filesystem::path next = part == ".." ? at.parent_path() : at / part;
    say(FactText(Fact::kAt, next.string()));
    std::error_code error;
    const auto target = std::filesystem::read_symlink(next, error);
    if (!error && ++links <= kMostLinks) {
      if (target.is_absolute()) at = "/";
      std::deque<std::string> parts(target.begin(), target.end());
      rest.insert(rest.begin(), parts.begin(), parts.end());
      continue;
    }
    if (!std::filesystem::exists(next, error)) return at;
    at = next;
  }
  return at;
}

void LookAt(const std::string& path, const Say& say) {
  std::error_code ignored;
  const std::filesystem::path wanted = std::filesystem::absolute(path, ignored);
  const std::filesystem::path real = Follow(wanted, say);
  say(FactText(Fact::kAt, real.string()));
  std::filesystem::path nearest = wanted;
  while (!std::filesystem::exists(nearest, ignored) && nearest.has_parent_path() &&
         nearest != nearest.parent_path()) {
    nearest = nearest.parent_path();
  }
  say(FactText(Fact::kExisting, nearest == wanted ? path : nearest.string()));
  struct statfs system = {};
  if (::statfs(nearest.c_str(), &system) != 0) {
    return say(FactText(Fact::kTrouble, base::SystemCause()));
  }
  const auto block = static_cast<std::uint64_t>(system.f_bsize);
  say(FactText(Fact::kSystem, absl::StrCat(static_cast<long>(system.f_type), " ",
                                           std::uint64_t{system.f_blocks} * block, " ",
                                           std::uint64_t{system.f_bavail} * block, " ",
                                           system.f_files, " ", system.f_ffree)));
  const auto start = steady_clock::now();
  say(FactText(Fact::kTrouble, Trial(nearest.string())));
  const auto took = std::chrono::duration_cast<milliseconds>(steady_clock::now() - start);
  say(FactText(Fact::kTook, absl::StrCat(took.count())));
}

void TakeSystem(const std::string& numbers, Directory& facts) {
  long type = 0;
  std::istringstream(numbers) >> type >> facts.total >> facts.free >> facts.files_total >>
      facts.files_free;
  facts.type = TypeName(type);
  facts.is_network = rendezvous::IsSharedAmongMachines(type);
  facts.is_memory = type == kTmpfs || type == kRamfs;
}

void AddDirectory(const Directory& directory, Severity severity, const std::string& what,
                  const std::string& remedy, Report& report, const char* why = nullptr) {
  report.Add(severity, UseName(directory.use), what,
             why != nullptr ? why : WhyWritten(directory.use), remedy);
}

void JudgeHang(const Directory& directory, Report& report) {
  const Directory::Hang& hang = *directory.hang;
  AddDirectory(
      directory, Severity::kError,
      absl::StrCat(directory.path, " does not answer: to ", hang.doing,
                   " did not come to an end within ", base::Seconds(hang.after),
                   hang.mount.point.empty() ? ""
                                            : absl::StrCat("; ", hang.mount.point,
                                                           " is a mount of type ", hang.mount.type),
                   "."),
      "Check that its server is up and reachable, and look in `dmesg`; `umount -l` detaches the "
      "mount. Or name another directory.",
      report,
      "Any process that touches it hangs and cannot always be killed: the job stalls silently at "
      "its start or at its first checkpoint.");
}

}  // namespace

Directory ReadDirectory(DirectoryUse use, const std::string& path, milliseconds limit) {
  Directory facts{.use = use, .path = path, .existing = path};
  const ProbeOutput output = LookWithin(limit, [&path](const Say& say) { LookAt(path, say); });
  std::string at = path;
  for (const std::string& said : output.said) {
    const std::string value = said.substr(1);
    switch (static_cast<Fact>(said[0])) {
      case Fact::kAt:
        at = value;
        break;
      case Fact::kExisting:
        facts.existing = value;
        break;
      case Fact::kSystem:
        TakeSystem(value, facts);
        break;
      case Fact::kTrouble:
        facts.trouble = value;
        break;
      case Fact::kTook:
        facts.took = milliseconds(std::atoll(value.c_str()));
        break;
    }
  }
  if (output.is_whole) return facts;
  if (!output.is_late) {
    facts.trouble = "the process that tried it was killed";
    return facts;
  }
  facts.hang = {.doing = facts.type.empty() ? absl::StrCat("look at ", at)
                                            : absl::StrCat("write a page to ", facts.existing),
                .after = limit,
                .mount = MountOf(at, worker::ReadSmallFile("/proc/self/mountinfo"))};
  return facts;
}

void Judge(const Directory& directory, bool has_peers, Report& report) {
  const std::string place =
      directory.existing == directory.path
          ? directory.path
          : absl::StrCat(directory.path, " (to be made in ", directory.existing, ")");
  const std::string room = absl::StrCat(directory.type, ", ", Size(directory.free), " of ",
                                        Size(directory.total), " free");
  const std::size_t before = report.findings.size();
  if (directory.hang) return JudgeHang(directory, report);
  if (!directory.trouble.empty()) {
    return AddDirectory(
        directory, Severity::kError,
        absl::StrCat("nothing can be written to ", place, ": ", directory.trouble,
                     directory.type.empty() ? "" : absl::StrCat(" (", room, ")"), "."),
        "Free some space, mount it writable or give this user permission, or name another "
        "directory.",
        report);
  }
  if (directory.free < kGiB) {
    AddDirectory(directory, Severity::kWarning, absl::StrCat(place, " is nearly full: ", room, "."),
                 "Free some space, or name another directory.", report);
  }
  // Some file systems, such as btrfs, do not count files.
  if (directory.files_total > 0 && directory.files_free < kFewFilesLeft) {
    AddDirectory(directory, Severity::kWarning,
                 absl::StrCat(place, " can take ", base::Count(directory.files_free, "more file"),
                              " (", directory.type, " has ", directory.files_total, ")."),
                 "Remove small files there, or name another directory.", report);
  }
  if (directory.took >= kSlowDisk) {
    AddDirectory(
        directory, Severity::kWarning,
        absl::StrCat("to write a page to ", place, " took ", base::Seconds(directory.took), "."),
        "Find out what else writes there; put logs and checkpoints on a faster disk.", report,
        "All ranks wait for the slowest writer.");
  }
  if (directory.use == DirectoryUse::kCheckpoints && directory.is_memory) {
    AddDirectory(directory, Severity::kWarning,
                 absl::StrCat(place, " is in memory (", directory.type, ")."),
                 "Name a directory on a disk.", report,
                 "Checkpoints there take memory from the workers, and are gone after a reboot.");
  }
  if (directory.use == DirectoryUse::kCheckpoints && has_peers && !directory.is_network &&
      !directory.is_memory) {
    AddDirectory(directory, Severity::kNote,
                 absl::StrCat(place, " is this host's own (", directory.type, ")."),
                 "Use a directory on a file system that all hosts share, unless each rank reads "
                 "only what it wrote itself.",
                 report,
                 "After a restart a rank may be on another host, where what was written here "
                 "cannot be read.");
  }
  if (report.findings.size() == before) {
    report.fine.push_back({UseName(directory.use), absl::StrCat(place, ": ", room)});
  }
}

}  // namespace muster::launcher

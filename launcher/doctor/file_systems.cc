#include "launcher/doctor/file_systems.h"

#include <fcntl.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/failure.h"
#include "base/phrases.h"
#include "base/unique_fd.h"
#include "rendezvous/net/token_source.h"

namespace muster::launcher {
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
  return "A checkpoint that cannot be written is found out hours after the start, and the work "
         "since the one before is lost.";
}

std::string Trial(const std::string& directory) {
  base::UniqueFd file(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file.valid() && (errno == EOPNOTSUPP || errno == EISDIR)) {
    // NFS and some others know no file without a name.
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

void AddDirectory(const Directory& directory, Severity severity, const std::string& what,
                  const std::string& remedy, Report& report, const char* why = nullptr) {
  report.findings.push_back({.severity = severity,
                             .subject = UseName(directory.use),
                             .what = what,
                             .why = why != nullptr ? why : WhyWritten(directory.use),
                             .remedy = remedy,
                             .hosts = {}});
}

}  // namespace

Directory ReadDirectory(DirectoryUse use, const std::string& path) {
  Directory facts{.use = use, .path = path, .existing = path};
  std::error_code ignored;
  std::filesystem::path nearest = std::filesystem::absolute(path, ignored);
  while (!std::filesystem::exists(nearest, ignored) && nearest.has_parent_path() &&
         nearest != nearest.parent_path()) {
    nearest = nearest.parent_path();
  }
  facts.existing = nearest.string();
  struct statfs system = {};
  if (::statfs(facts.existing.c_str(), &system) != 0) {
    facts.trouble = base::SystemCause();
    return facts;
  }
  const auto type = static_cast<long>(system.f_type);
  const auto block = static_cast<std::uint64_t>(system.f_bsize);
  facts.type = TypeName(type);
  facts.is_network = rendezvous::IsSharedAmongMachines(type);
  facts.is_memory = type == kTmpfs || type == kRamfs;
  facts.total = std::uint64_t{system.f_blocks} * block;
  facts.free = std::uint64_t{system.f_bavail} * block;
  facts.files_total = system.f_files;
  facts.files_free = system.f_ffree;
  const auto start = steady_clock::now();
  facts.trouble = Trial(facts.existing);
  facts.took = std::chrono::duration_cast<milliseconds>(steady_clock::now() - start);
  return facts;
}

void Judge(const Directory& directory, bool has_peers, Report& report) {
  const std::string place =
      directory.existing == directory.path
          ? directory.path
          : absl::StrCat(directory.path, " (to be made in ", directory.existing, ")");
  const std::string room =
      absl::StrCat(directory.type, ", ", Size(static_cast<double>(directory.free)), " of ",
                   Size(static_cast<double>(directory.total)), " free");
  const std::size_t before = report.findings.size();
  if (!directory.trouble.empty()) {
    return AddDirectory(
        directory, Severity::kError,
        absl::StrCat("nothing can be written to ", place, ": ", directory.trouble,
                     directory.type.empty() ? "" : absl::StrCat(" (", room, ")"), "."),
        "Make room, mount it for writing or give this user the right to, or name "
        "another directory.",
        report);
  }
  if (directory.free < kGiB) {
    AddDirectory(directory, Severity::kWarning, absl::StrCat(place, " is nearly full: ", room, "."),
                 "Make room, or name another directory.", report);
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
        "See what else writes there; give logs and checkpoints a faster disk.", report,
        "All ranks wait for the slowest one's writing.");
  }
  if (directory.use == DirectoryUse::kCheckpoints && directory.is_memory) {
    AddDirectory(directory, Severity::kWarning,
                 absl::StrCat(place, " is in memory (", directory.type, ")."),
                 "Name a directory on a disk.", report,
                 "Checkpoints there take memory from the workers, and are gone after a reboot.");
  }
  if (directory.use == DirectoryUse::kCheckpoints && has_peers && !directory.is_network &&
      !directory.is_memory) {
    AddDirectory(
        directory, Severity::kNote,
        absl::StrCat(place, " is this host's own (", directory.type, ")."),
        "Name a directory on a file system that all hosts see, unless each rank reads only "
        "what it wrote itself.",
        report,
        "After a restart a rank may be on another host, where what was written here "
        "cannot be read.");
  }
  if (report.findings.size() == before) {
    report.fine.push_back({UseName(directory.use), absl::StrCat(place, ": ", room)});
  }
}

}  // namespace muster::launcher

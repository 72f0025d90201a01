#include "launcher/doctor/machine.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/unique_fd.h"
#include "launcher/doctor/bounded_look.h"

namespace muster::launcher {
namespace {

namespace fs = std::filesystem;

constexpr char kNcclName[] = "libnccl.so.2";
// Larger than any existing one. The file is mapped, and read until the version is found.
constexpr std::uintmax_t kMostLibraryBytes = std::uintmax_t{2} << 30;

bool IsFile(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// Finds `NAME (libc6,x86-64) => PATH` in the list of the loader's cache.
std::string FindInCache(const Environment& environment, std::chrono::milliseconds limit) {
  // The PATH of a user who is not root often lacks /sbin.
  const char* const program = IsFile("/sbin/ldconfig") ? "/sbin/ldconfig" : "ldconfig";
  const std::string output = OutputOf({.argv = {program, "-p"},
                                       .env = ToBlock(environment),
                                       .limit = limit,
                                       .output_limit = 4 << 20});
  for (const absl::string_view line : absl::StrSplit(output, '\n')) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(" => ", 1));
    if (parts.size() == 2 &&
        absl::StartsWith(absl::StripAsciiWhitespace(parts[0]), absl::StrCat(kNcclName, " "))) {
      return parts[1];
    }
  }
  return "";
}

std::string VersionOf(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return "";
  if (std::string version = NcclVersionIn(real.filename()); !version.empty()) return version;
  const base::UniqueFd file(::open(real.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info = {};
  if (!file.valid() || ::fstat(file.get(), &info) != 0 || info.st_size <= 0) return "";
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size > kMostLibraryBytes) return "";
  void* const bytes = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (bytes == MAP_FAILED) return "";
  constexpr std::string_view kMark = "NCCL version ";
  const std::string_view all(static_cast<const char*>(bytes), size);
  std::string version;
  for (std::size_t at = all.find(kMark); at != std::string_view::npos && version.empty();
       at = all.find(kMark, at + 1)) {
    version = NcclVersionIn(std::string(all.substr(at, 40)));
  }
  ::munmap(bytes, size);
  return version;
}

NcclLibrary LookForNccl(const Environment& environment, const std::string& cached) {
  NcclLibrary library;
  // The loader accepts spaces and colons as separators.
  for (const absl::string_view each : absl::StrSplit(GetOr(environment, "LD_PRELOAD", ""),
                                                     absl::ByAnyChar(" :"), absl::SkipEmpty())) {
    const std::string name(each);
    if (!absl::StartsWith(fs::path(name).filename().string(), "libnccl.so")) continue;
    if (IsFile(name)) {
      library.path = name;
      library.by = "LD_PRELOAD";
      break;
    }
    if (absl::StrContains(name, "/")) library.missing_preload = name;
  }
  const std::string directories = GetOr(environment, "LD_LIBRARY_PATH", "");
  for (const absl::string_view directory :
       absl::StrSplit(directories, absl::ByAnyChar(":;"), absl::SkipEmpty())) {
    const std::string path = absl::StrCat(directory, "/", kNcclName);
    if (!library.path.empty()) break;
    if (!IsFile(path)) continue;
    library.path = path;
    library.by = "LD_LIBRARY_PATH";
  }
  if (library.path.empty()) library.path = cached;
  if (!library.path.empty()) library.version = VersionOf(library.path);
  return library;
}

}  // namespace

std::string NcclVersionIn(const std::string& text) {
  for (const absl::string_view mark : {"libnccl.so.", "NCCL version "}) {
    const std::size_t at = text.find(std::string(mark));
    if (at == std::string::npos) continue;
    std::string version = text.substr(at + mark.size());
    version.resize(std::min(version.find_first_not_of("0123456789."), version.size()));
    while (absl::EndsWith(version, ".")) version.pop_back();
    if (std::count(version.begin(), version.end(), '.') == 2) return version;
  }
  return "";
}

NcclLibrary FindNcclLibrary(const Environment& environment, std::chrono::milliseconds limit) {
  const std::string cached = FindInCache(environment, limit);
  // The directories may be on file systems that do not answer.
  const ProbeOutput output = LookWithin(limit, [&](const Say& say) {
    const NcclLibrary found = LookForNccl(environment, cached);
    for (const std::string& each : {found.path, found.by, found.version, found.missing_preload}) {
      say(each);
    }
  });
  if (!output.is_whole || output.said.size() != 4) return {};
  return {.path = output.said[0],
          .by = output.said[1],
          .version = output.said[2],
          .missing_preload = output.said[3]};
}

void Judge(const NcclLibrary& library, const std::string& bundled, Report& report) {
  if (!library.missing_preload.empty()) {
    report.Add(Severity::kWarning, "NCCL",
               absl::StrCat("LD_PRELOAD names ", library.missing_preload, ", which is not there."),
               "The loader ignores it, and the workers run with a different NCCL than intended.",
               "Correct the path, or remove it from LD_PRELOAD.");
  }
  if (library.path.empty()) return;
  const std::string found = absl::StrCat(
      library.path, " (", library.version.empty() ? "its version is unknown" : library.version,
      library.by.empty() ? "" : absl::StrCat(", by ", library.by), ")");
  if (!library.version.empty()) report.versions["the system's NCCL"] = library.version;
  if (bundled.empty() || library.version.empty() || library.version == bundled) {
    report.fine.push_back({"NCCL", absl::StrCat("libnccl.so.2 is ", found)});
    return;
  }
  const std::string what =
      absl::StrCat("the loader finds ", found, ", and PyTorch brings NCCL ", bundled, ".");
  if (library.by == "LD_PRELOAD") {
    report.Add(Severity::kWarning, "NCCL", what,
               "The preloaded library replaces the one that PyTorch was built and tested with; if "
               "only some ranks have it, they fail to connect, or hang.",
               "Remove it from LD_PRELOAD, or make all hosts preload the same one.");
    return;
  }
  report.Add(
      Severity::kNote, "NCCL", what,
      "PyTorch uses its own, while plugins, tests and programs that link to NCCL get the "
      "other one: nccl-tests then measure a different library than training uses, and a plugin may "
      "not match.",
      "Install the same version in both places, or remove the directory from LD_LIBRARY_PATH.");
}

}  // namespace muster::launcher

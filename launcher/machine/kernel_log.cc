#include "launcher/machine/kernel_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace muster::launcher {
namespace {

constexpr unsigned kMemory = 1;  // the number of /dev/kmsg, Documentation/admin-guide/devices.txt
constexpr unsigned kKmsg = 11;
constexpr std::size_t kMostRecord = 8192;  // bytes; the kernel's CONSOLE_EXT_LOG_MAX

// Takes "name=value, " off the front of `text`. nullopt: it does not begin so.
std::optional<absl::string_view> TakeMember(absl::string_view name, absl::string_view* text) {
  if (!absl::ConsumePrefix(text, name)) return std::nullopt;
  const std::size_t end = text->find(", ");
  const absl::string_view value = text->substr(0, end);
  text->remove_prefix(end == absl::string_view::npos ? text->size() : end + 2);
  return value;
}

}  // namespace

std::optional<Xid> ReadXid(absl::string_view line) {
  constexpr absl::string_view kStart = "NVRM: Xid (PCI:";
  const std::size_t start = line.find(kStart);
  if (start == absl::string_view::npos) return std::nullopt;
  line.remove_prefix(start + kStart.size());
  const std::size_t end = line.find("): ");
  if (end == absl::string_view::npos) return std::nullopt;
  Xid xid;
  xid.pci_bus_id = absl::AsciiStrToLower(line.substr(0, end));
  if (!absl::StrContains(xid.pci_bus_id, '.')) absl::StrAppend(&xid.pci_bus_id, ".0");
  line.remove_prefix(end + 3);
  const std::size_t digits = line.find_first_not_of("0123456789");
  if (!absl::SimpleAtoi(line.substr(0, digits), &xid.number)) return std::nullopt;
  line.remove_prefix(digits == absl::string_view::npos ? line.size() : digits);
  absl::ConsumePrefix(&line, ", ");
  // A driver that does not know them writes pid='<unknown>', name=<unknown>.
  if (const auto pid = TakeMember("pid=", &line); pid && !absl::SimpleAtoi(*pid, &xid.pid)) {
    xid.pid = 0;
  }
  TakeMember("name=", &line);
  xid.text = std::string(absl::StripAsciiWhitespace(line));
  return xid;
}

std::string Describe(const Xid& xid) {
  return absl::StrCat("Xid ", xid.number, " of GPU ", xid.pci_bus_id,
                      xid.text.empty() ? "" : absl::StrCat(" (", xid.text, ")"));
}

std::string XidsBefore(const std::vector<Xid>& xids, pid_t pid) {
  if (xids.empty()) return "";
  const auto own = std::find_if(xids.begin(), xids.end(),
                                [pid](const Xid& xid) { return pid > 0 && xid.pid == pid; });
  if (own != xids.end()) return absl::StrCat(", after ", Describe(*own));
  return absl::StrCat("; meanwhile the NVIDIA driver reported ", Describe(xids.front()),
                      xids.size() == 1 ? "" : absl::StrCat(" and ", xids.size() - 1, " more"));
}

KernelLog::KernelLog(From from, const std::string& path)
    : file_(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) {
  struct stat facts = {};
  const bool log = file_.valid() && fstat(file_.get(), &facts) == 0 &&
                   (S_ISREG(facts.st_mode) ||
                    (S_ISCHR(facts.st_mode) && facts.st_rdev == makedev(kMemory, kKmsg)));
  // Some containers have a terminal in its place.
  if (!log) file_.reset();
  if (file_.valid() && from == From::kNow) lseek(file_.get(), 0, SEEK_END);
}

std::vector<Xid> KernelLog::ReadNew() {
  std::vector<Xid> found;
  std::string rest;  // the beginning of a line; a device returns whole records
  std::array<char, kMostRecord> piece;
  while (file_.valid()) {
    const ssize_t bytes = read(file_.get(), piece.data(), piece.size());
    // The kernel says so when it has written over what would have come next.
    if (bytes < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (bytes <= 0) break;
    rest.append(piece.data(), static_cast<std::size_t>(bytes));
    const std::size_t end = rest.rfind('\n');
    if (end == std::string::npos) continue;
    for (const absl::string_view line : absl::StrSplit(rest.substr(0, end), '\n')) {
      if (auto xid = ReadXid(line)) found.push_back(*std::move(xid));
    }
    rest.erase(0, end + 1);
  }
  return found;
}

}  // namespace muster::launcher

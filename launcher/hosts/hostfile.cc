#include "launcher/hosts/hostfile.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/failure.h"
#include "base/unique_fd.h"
#include "launcher/hosts/host_ranges.h"

namespace muster::launcher {
namespace {

constexpr std::size_t kMaxBytes = 16 * 1024 * 1024;

absl::Status At(absl::string_view file, int line, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(file, ":", line, ": ", what));
}

// The hosts of a line's words; the error is what is wrong with them.
absl::StatusOr<std::vector<Host>> ParseWords(const std::vector<absl::string_view>& words) {
  auto hosts = ParseHosts(words.front());
  if (!hosts.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("this line ", hosts.status().message()));
  }
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::pair<absl::string_view, absl::string_view> word =
        absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    const bool is_limit = word.first == "max_slots" || word.first == "max-slots";
    if (word.first != "slots" && !is_limit) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown word '", absl::CHexEscape(words[i]),
                       "' behind a host; what may stand there is slots=N, and # before a comment"));
    }
    const auto workers = ParseWorkers(word.second);
    if (!workers.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(absl::CHexEscape(words[i]), " ", workers.status().message()));
    }
    if (is_limit) continue;
    for (Host& host : *hosts) {
      if (host.workers) {
        return absl::InvalidArgumentError(absl::StrCat("says twice how many workers ", host.Text(),
                                                       " has; keep the colon or slots="));
      }
      host.workers = *workers;
    }
  }
  return hosts;
}

}  // namespace

absl::StatusOr<std::vector<Host>> ParseHostfile(absl::string_view text, absl::string_view file) {
  std::vector<Host> hosts;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = line.substr(0, line.find('#'));
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t\r\v\f"), absl::SkipEmpty());
    if (words.empty()) continue;
    const auto more = ParseWords(words);
    if (!more.ok()) return At(file, number, more.status().message());
    hosts.insert(hosts.end(), more->begin(), more->end());
    if (hosts.size() > kMaxHosts) {
      return At(file, number, absl::StrCat("there are more than ", kMaxHosts, " hosts by now"));
    }
  }
  if (hosts.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, " names no host; write a name on each line"));
  }
  auto merged = MergeRepeated(std::move(hosts));
  if (!merged.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(file, " ", merged.status().message()));
  }
  return merged;
}

absl::StatusOr<std::vector<Host>> ReadHostfile(const std::string& file) {
  const base::UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    return base::SystemFailure(absl::StatusCode::kInvalidArgument, "read the hostfile", file);
  }
  std::string text;
  char piece[64 * 1024];
  while (true) {
    const ssize_t size = ::read(fd.get(), piece, sizeof piece);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) {
      return base::SystemFailure(absl::StatusCode::kInvalidArgument, "read the hostfile", file);
    }
    if (size == 0) return ParseHostfile(text, file);
    text.append(piece, static_cast<std::size_t>(size));
    if (text.size() > kMaxBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("the hostfile ", file, " is larger than 16 MiB; is it the right file?"));
    }
  }
}

}  // namespace muster::launcher

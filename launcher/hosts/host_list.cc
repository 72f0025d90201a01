#include "launcher/hosts/host_list.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "launcher/hosts/host_ranges.h"

namespace muster::launcher {
namespace {

// As many as a machine has process numbers by default.
constexpr int kMaxWorkers = 32'768;

constexpr absl::string_view kExample = "write node0:8,node[1-3]:4";

// Whether all characters are letters, digits or among `others`. What ssh, a shell or a terminal
// could take for anything but a name is not let through.
bool IsPlain(absl::string_view text, absl::string_view others) {
  return std::all_of(text.begin(), text.end(), [others](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::StrContains(others, absl::string_view(&c, 1));
  });
}

absl::Status Wrong(absl::string_view item, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("has '", absl::CHexEscape(item), "', which ", what));
}

// What stands before the colon and behind it.
struct Parts {
  absl::string_view user;
  absl::string_view name;
  bool is_ipv6 = false;
  std::optional<absl::string_view> workers;
};

absl::StatusOr<Parts> TakeApart(absl::string_view item) {
  Parts parts;
  absl::string_view rest = item;
  if (const std::size_t at = rest.find('@'); at != absl::string_view::npos) {
    parts.user = rest.substr(0, at);
    rest.remove_prefix(at + 1);
    if (parts.user.empty()) return Wrong(item, "names no user before the @; write user@node0");
  }
  const std::size_t close = rest.find(']');
  parts.is_ipv6 = absl::StartsWith(rest, "[") && close != absl::string_view::npos &&
                  absl::StrContains(rest.substr(0, close), ':');
  if (parts.is_ipv6) {
    parts.name = rest.substr(1, close - 1);
    rest.remove_prefix(close + 1);
    if (!rest.empty() && rest.front() != ':') {
      return Wrong(item, "goes on behind an address in brackets; write [fd00::1]:4");
    }
    if (!rest.empty()) parts.workers = rest.substr(1);
    return parts;
  }
  const std::size_t colon = rest.find(':');
  parts.name = rest.substr(0, colon);
  if (colon == absl::string_view::npos) return parts;
  parts.workers = rest.substr(colon + 1);
  if (absl::StrContains(*parts.workers, ':')) {
    return Wrong(item, "has several colons; write an IPv6 address in brackets, as in [fd00::1]:4");
  }
  return parts;
}

}  // namespace

absl::StatusOr<int> ParseWorkers(absl::string_view text) {
  int workers = 0;
  if (!absl::SimpleAtoi(text, &workers) || workers < 1 || workers > kMaxWorkers) {
    return absl::InvalidArgumentError(
        absl::StrCat("is no number of workers from 1 to ", kMaxWorkers));
  }
  return workers;
}

absl::StatusOr<std::vector<Host>> ParseHosts(absl::string_view item) {
  if (item.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("names no host between two commas; ", kExample));
  }
  const auto parts = TakeApart(item);
  if (!parts.ok()) return parts.status();
  Host host;
  host.user = std::string(parts->user);
  if (parts->workers) {
    const auto workers = ParseWorkers(*parts->workers);
    if (!workers.ok()) {
      return Wrong(item, absl::StrCat("says '", absl::CHexEscape(*parts->workers),
                                      "' behind the colon, which ", workers.status().message()));
    }
    host.workers = *workers;
  }
  if (absl::StartsWith(host.user, "-") || !IsPlain(host.user, "._+-$")) {
    return Wrong(item, "has characters before the @ that no user's name has");
  }

  std::vector<std::string> names = {std::string(parts->name)};
  if (!parts->is_ipv6) {
    auto expanded = ExpandRanges(parts->name);
    if (!expanded.ok()) return Wrong(item, expanded.status().message());
    names = *std::move(expanded);
  }
  std::vector<Host> hosts;
  for (std::string& name : names) {
    if (name.empty()) return Wrong(item, absl::StrCat("names no host; ", kExample));
    if (absl::StartsWith(name, "-") || !IsPlain(name, parts->is_ipv6 ? ".:%_-" : "._-")) {
      return Wrong(item, "has characters that no host's name has");
    }
    host.name = std::move(name);
    hosts.push_back(host);
  }
  return hosts;
}

absl::StatusOr<std::vector<Host>> ParseHostList(absl::string_view text) {
  std::vector<Host> hosts;
  for (const absl::string_view item : SplitHostItems(text)) {
    auto more = ParseHosts(item);
    if (!more.ok()) return more.status();
    hosts.insert(hosts.end(), more->begin(), more->end());
    if (hosts.size() > kMaxHosts) {
      return absl::InvalidArgumentError(
          absl::StrCat("stands for more than ", kMaxHosts, " hosts; check its ranges"));
    }
  }
  return MergeRepeated(std::move(hosts));
}

absl::StatusOr<std::vector<Host>> MergeRepeated(std::vector<Host> hosts) {
  std::vector<Host> merged;
  std::map<std::string, std::size_t> places;
  for (Host& host : hosts) {
    const auto [place, is_new] = places.emplace(host.Text(), merged.size());
    if (is_new) {
      merged.push_back(std::move(host));
      continue;
    }
    Host& first = merged[place->second];
    first.workers = first.workers.value_or(1) + host.workers.value_or(1);
    if (*first.workers > kMaxWorkers) {
      return absl::FailedPreconditionError(
          absl::StrCat("gives ", first.Text(), " more than ", kMaxWorkers, " workers in all"));
    }
  }
  return merged;
}

}  // namespace muster::launcher

#include "rendezvous/core/values/types.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace muster::rendezvous {
namespace {

// "version 2", or "versions 2 to 4".
std::string Named(const SpokenVersions& versions) {
  if (versions.oldest == versions.newest) return absl::StrCat("version ", versions.oldest);
  return absl::StrCat("versions ", versions.oldest, " to ", versions.newest);
}

}  // namespace

std::optional<int> CommonVersion(const SpokenVersions& a, const SpokenVersions& b) {
  const int newest = std::min(a.newest, b.newest);
  if (newest < std::max(a.oldest, b.oldest)) return std::nullopt;
  return newest;
}

std::string VersionObjection(const SpokenVersions& daemon, const SpokenVersions& node) {
  if (CommonVersion(daemon, node)) return "";
  return absl::StrCat("this node's Muster speaks ", Named(node),
                      " of the rendezvous protocol, and the daemon's ", Named(daemon),
                      ": install a later Muster ",
                      node.newest < daemon.oldest ? "on this node" : "where the daemon runs");
}

}  // namespace muster::rendezvous

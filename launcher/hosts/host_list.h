// The hosts of a job and how many workers each has, as --hosts gives them.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::launcher {

struct Host {
  // What ssh is told, without brackets: a name of the user's ssh configuration or of DNS, or an
  // address. Never empty, and never begins with a dash.
  std::string name;
  // Who is logged in there; empty: whom ssh's configuration says.
  std::string user;
  // Unset: not said; then it is --nproc-per-node's.
  std::optional<int> workers;

  // "node1", "user@node1": what the host is called in sentences, and by what it is told from
  // others.
  std::string Text() const { return user.empty() ? name : user + "@" + name; }

  bool operator==(const Host&) const = default;
};

// "node0:8,node[1-3]:4,alice@[fd00::1]:2": names or addresses, with ranges (host_ranges.h), with a
// number of workers behind a colon; an IPv6 address is in brackets. The hosts are in the order in
// which they are first named. One that is named again has the workers of all its mentions, of which
// one without a number is one more. An error's message is a phrase that follows the text it is
// about.
absl::StatusOr<std::vector<Host>> ParseHostList(absl::string_view text);

// The hosts that one member of such a list stands for.
absl::StatusOr<std::vector<Host>> ParseHosts(absl::string_view item);

// Puts hosts that are named several times together, as said above. FailedPrecondition, with a
// phrase as message, where that makes more workers than a host can have.
absl::StatusOr<std::vector<Host>> MergeRepeated(std::vector<Host> hosts);

// A number of workers, from 1 up to what a node can have. The message is a phrase.
absl::StatusOr<int> ParseWorkers(absl::string_view text);

}  // namespace muster::launcher

// The hosts of a job and their workers, as in --hosts.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::launcher {

struct Host {
  // The argument for ssh, without brackets: a name from the user's ssh configuration or DNS, or an
  // address. Never empty, never starts with a dash.
  std::string name;
  // The login user; empty: ssh's configuration decides.
  std::string user;
  // Unset: --nproc-per-node decides.
  std::optional<int> workers;

  // "node1", "user@node1": the host in messages, and its identity.
  std::string Text() const { return user.empty() ? name : user + "@" + name; }

  bool operator==(const Host&) const = default;
};

// Parses "node0:8,node[1-3]:4,alice@[fd00::1]:2": names or addresses, with ranges (ExpandRanges),
// with a number of workers after a colon; an IPv6 address needs brackets. Hosts keep the order of
// their first mention. A repeated host gets the workers of all its mentions; a mention without a
// number adds one. An error's message is a phrase that follows the parsed text.
absl::StatusOr<std::vector<Host>> ParseHostList(absl::string_view text);

// Parses one item of such a list.
absl::StatusOr<std::vector<Host>> ParseHosts(absl::string_view item);

// Merges repeated hosts as described above. FailedPrecondition, with a phrase as message, if a host
// then has too many workers.
absl::StatusOr<std::vector<Host>> MergeRepeated(std::vector<Host> hosts);

// Parses a number of workers, from 1 to a node's maximum. An error's message is a phrase.
absl::StatusOr<int> ParseWorkers(absl::string_view text);

// Host ranges in pdsh's syntax: node[1-3,07-12].

// More hosts than any job has; a larger list is a typo.
inline constexpr std::size_t kMaxHosts = 100'000;

// The names in `text`, in order: "n[1,3-4]" is n1, n3 and n4, "n[08-10]" is n08, n09 and n10,
// "r[1-2]n[1-2]" is r1n1, r1n2, r2n1 and r2n2. A text without brackets is returned as is. An
// error's message is a phrase that follows the parsed text: "has a backward range, 9-3;
// write 3-9".
absl::StatusOr<std::vector<std::string>> ExpandRanges(absl::string_view text);

// Splits "node[1-3,7],gpu07" at the commas outside brackets. Returns at least one item, which may
// be empty; they refer to `text`.
std::vector<absl::string_view> SplitHostItems(absl::string_view text);

// Host files in the formats of Open MPI and MPICH.

// One entry per line, in any mixture of
//   node0              a plain name, or a range, as above
//   node0 slots=8      Open MPI's; max_slots= is checked and ignored
//   node0:8            MPICH's
// with # before comments. Repeated hosts are merged as above. An error's message is a sentence that
// begins with the place: "hosts.txt:3: slots=x is no number of workers ...". `file` is its name
// there.
absl::StatusOr<std::vector<Host>> ParseHostfile(absl::string_view text, absl::string_view file);

// Reads a file or a pipe ("/dev/stdin") of at most 16 MiB. May block on a disk.
absl::StatusOr<std::vector<Host>> ReadHostfile(const std::string& file);

}  // namespace muster::launcher

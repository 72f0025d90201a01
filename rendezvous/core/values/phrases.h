// The names that users give to jobs, and those of nodes. As with torchrun, any text is a name; it
// is escaped where it becomes part of a file name, URL, metric label or key. Only names that cannot
// be escaped there, or would break a line, are refused, at both the daemon and the agent.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

#include "rendezvous/core/values/record.h"
#include "rendezvous/core/values/snapshot.h"
#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

inline constexpr std::size_t kMaxNameLength = 255;  // bytes

// Ok when `name` is 1 to 255 bytes of UTF-8 without control characters. InvalidArgument otherwise,
// with one sentence that begins with `what`:
//   run id "a\nb" has a control character
// The sentence shows the name escaped and shortened, so it may be logged as it is.
absl::Status CheckName(std::string_view what, std::string_view name);

// `name` as it appears after "run=" in the log: unchanged, or quoted if it would not end at the
// next blank, with quotes and backslashes escaped. Safe to show.
std::string NameInLog(std::string_view name);

// Text from other machines, made safe to show and to forward (base/safe_text.h).

// `text` cut to `limit` bytes, with '?' for each invisible character (line feeds and tabs are kept)
// and for each byte that is not UTF-8. The result is valid UTF-8: protobuf rejects a whole message
// for one invalid string, so one node's odd file name would break everyone's streams.
std::string Printable(std::string_view text, std::size_t limit);

// The same on one line: line feeds and tabs become spaces.
std::string OneLine(std::string_view text, std::size_t limit);

// Sentences about nodes and their failures, the same on status page, log and terminal.

// If nodes named the ranks they want: " (missing: node ranks 1, 3)", the ranks of 0..max_nodes-1
// that none asked for. Empty if a node named no rank, or if none is missing.
std::string MissingHints(const std::vector<Candidate>& joined, int max_nodes);

// "rank 3 on host b exited with code 3".
std::string DescribeFailure(const WorkerFailure& failure);

// Why a node may not leave a job that has `nodes` nodes, itself included: "the job needs 2 nodes,
// and has 2".
std::string WhyNodeIsNeeded(int min_nodes, int max_nodes, int nodes);

// The newest version that both speak; nullopt: there is none.
std::optional<int> CommonVersion(const SpokenVersions& a, const SpokenVersions& b);

// Why a daemon and a node cannot communicate; empty: they can.
std::string VersionObjection(const SpokenVersions& daemon, const SpokenVersions& node);

// "gathering", "running", ...: the enumerator as a word, without its k.
const char* StateName(JobState state);
const char* StateName(NodeState state);

}  // namespace muster::rendezvous

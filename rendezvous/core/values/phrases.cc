#include "rendezvous/core/values/phrases.h"

#include <algorithm>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "base/safe_text.h"
#include "base/text.h"

namespace muster::rendezvous {
namespace {

constexpr std::size_t kShownOfName = 64;  // bytes of a refused name

// "run id "a\nb" has ...", whatever bytes the name holds.
absl::Status Refuse(std::string_view what, std::string_view name, const char* why) {
  const bool cut = name.size() > kShownOfName;
  return absl::InvalidArgumentError(absl::StrCat(
      std::string(what), " \"", absl::CEscape(std::string(name.substr(0, kShownOfName))),
      cut ? "...\" " : "\" ", why));
}

// "version 2", or "versions 2 to 4".
std::string Named(const SpokenVersions& versions) {
  if (versions.oldest == versions.newest) return absl::StrCat("version ", versions.oldest);
  return absl::StrCat("versions ", versions.oldest, " to ", versions.newest);
}

}  // namespace

absl::Status CheckName(std::string_view what, std::string_view name) {
  if (name.empty()) return absl::InvalidArgumentError(std::string(what) + " is empty");
  if (name.size() > kMaxNameLength) return Refuse(what, name, "is longer than 255 bytes");
  for (std::string_view rest = name; !rest.empty();) {
    const std::optional<base::Character> character = base::FirstCharacter(rest);
    if (!character) return Refuse(what, name, "is not UTF-8");
    if (base::IsControl(character->code)) return Refuse(what, name, "has a control character");
    rest.remove_prefix(character->size);
  }
  return absl::OkStatus();
}

std::string NameInLog(std::string_view name) {
  const std::string shown = base::SafeLine(name);
  const bool is_word = !shown.empty() && std::none_of(shown.begin(), shown.end(), [](char c) {
    return c == ' ' || c == '"' || c == '\\' || c == '=';
  });
  if (is_word) return shown;
  std::string quoted = "\"";
  for (const char c : shown) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string Printable(std::string_view text, std::size_t limit) {
  return base::SafeText(text, limit);
}

std::string OneLine(std::string_view text, std::size_t limit) {
  return base::SafeLine(text, limit);
}

std::string MissingHints(const std::vector<Candidate>& joined, int max_nodes) {
  std::set<int> asked_for;
  for (const Candidate& candidate : joined) {
    if (candidate.node->rank_hint) asked_for.insert(*candidate.node->rank_hint);
  }
  if (asked_for.empty() || *asked_for.rbegin() >= max_nodes) return "";
  // If a node did not name its rank, the missing one is unknown.
  if (asked_for.size() != joined.size()) return "";
  // Only as many as are shown: with a hundred thousand nodes a full list is useless.
  std::vector<std::string> shown;
  const std::size_t missing = static_cast<std::size_t>(max_nodes) - asked_for.size();
  for (int rank = 0; rank < max_nodes && shown.size() < missing && shown.size() <= base::kShown;
       ++rank) {
    if (!asked_for.contains(rank)) shown.push_back(absl::StrCat(rank));
  }
  if (missing == 0) return "";
  return absl::StrCat(" (missing: node rank", missing == 1 ? " " : "s ",
                      base::ShortList(shown, missing), ")");
}

std::string DescribeFailure(const WorkerFailure& failure) {
  return absl::StrCat("rank ", failure.rank, " on host ", failure.host, " ", failure.what);
}

std::string WhyNodeIsNeeded(int min_nodes, int max_nodes, int nodes) {
  if (min_nodes == max_nodes) {
    return absl::StrCat("the job needs all of its ", base::Count(max_nodes, "node"),
                        "; with --nnodes=MIN:MAX it could go on without");
  }
  return absl::StrCat("the job needs ", base::Count(min_nodes, "node"), ", and has ", nodes);
}

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

const char* StateName(JobState state) {
  constexpr const char* kNames[] = {"gathering", "running", "ended"};
  return NameAt<JobState::kEnded>(kNames, state);
}

const char* StateName(NodeState state) {
  constexpr const char* kNames[] = {"joined",    "starting", "running",
                                    "succeeded", "stopping", "spare"};
  return NameAt<NodeState::kSpare>(kNames, state);
}

}  // namespace muster::rendezvous

#include "launcher/replay/job_events.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/phrases.h"

namespace muster::launcher {
namespace {

using std::chrono::nanoseconds;
using Life = std::optional<rendezvous::Incarnation>;

// Of each job its nodes, by id.
using Jobs = std::map<std::string, std::map<std::string, NodeEvents>>;

Jobs Merge(std::vector<EventFile> files) {
  Jobs jobs;
  for (EventFile& file : files) {
    for (NodeEvents& part : file.nodes) {
      NodeEvents& whole = jobs[part.job][part.node];
      whole.job = part.job;
      whole.node = part.node;
      std::move(part.events.begin(), part.events.end(), std::back_inserter(whole.events));
    }
  }
  for (auto& [job, nodes] : jobs) {
    for (auto& [id, node] : nodes) {
      std::stable_sort(node.events.begin(), node.events.end(),
                       [](const LoggedEvent& one, const LoggedEvent& other) {
                         return one.monotonic < other.monotonic;
                       });
    }
  }
  return jobs;
}

// An agent takes part in one life of its job: that of its first place.
Life LifeOf(const NodeEvents& node) {
  for (const LoggedEvent& event : node.events) {
    if (event.place) return event.place->incarnation;
  }
  return std::nullopt;
}

struct Span {
  nanoseconds begin = nanoseconds::max();
  nanoseconds end = nanoseconds::min();

  void Take(const NodeEvents& node) {
    begin = std::min(begin, node.events.front().wall);
    end = std::max(end, node.events.back().wall);
  }
  bool Touches(const Span& other) const { return begin <= other.end && other.begin <= end; }
};

absl::Status NoSuchJob(const Jobs& jobs, const std::string& job) {
  std::vector<std::string> names;
  for (const auto& [name, nodes] : jobs) names.push_back(name);
  const std::string there = base::ShortList(names);
  if (job.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("these logs are of several jobs, ", there, "; name one with --job"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("these logs say nothing of job '", job, "'; they are of ", there));
}

// The life that ended last.
Life LastLife(const std::map<std::string, NodeEvents>& nodes) {
  Life last;
  nanoseconds end = nanoseconds::min();
  for (const auto& [id, node] : nodes) {
    const Life life = LifeOf(node);
    if (!life || node.events.back().wall < end) continue;
    last = life;
    end = node.events.back().wall;
  }
  return last;
}

}  // namespace

absl::StatusOr<JobEvents> ChooseJob(std::vector<EventFile> files, const std::string& job) {
  JobEvents chosen;
  for (const EventFile& file : files) {
    chosen.notes.insert(chosen.notes.end(), file.notes.begin(), file.notes.end());
  }
  Jobs jobs = Merge(std::move(files));
  const auto found = job.empty() && jobs.size() == 1 ? jobs.begin() : jobs.find(job);
  if (found == jobs.end()) return NoSuchJob(jobs, job);
  chosen.job = found->first;

  const Life life = LastLife(found->second);
  Span span;
  for (const auto& [id, node] : found->second) {
    if (LifeOf(node) == life) span.Take(node);
  }
  std::set<rendezvous::Incarnation> other_lives;
  std::size_t others = 0;
  for (auto& [id, node] : found->second) {
    const Life own = LifeOf(node);
    Span its;
    its.Take(node);
    // Who never got a place belongs to the life beside which it waited.
    if (own == life || (!own && its.Touches(span))) {
      chosen.nodes.push_back(std::move(node));
      continue;
    }
    ++others;
    if (own) other_lives.insert(*own);
  }
  if (others > 0) {
    chosen.notes.push_back(absl::StrCat(
        base::Count(others, "node"), " of ",
        other_lives.size() > 1 ? absl::StrCat(other_lives.size(), " other jobs")
                               : std::string("another job"),
        " of the same name, which ended earlier, ", others == 1 ? "is" : "are", " left out"));
  }
  return chosen;
}

}  // namespace muster::launcher

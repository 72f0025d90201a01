#include "launcher/replay/event_file.h"

#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/json.h"
#include "base/phrases.h"
#include "launcher/report/event_schema.h"
#include "launcher/report/event_table.h"

namespace muster::launcher {
namespace {

using base::Json;

// Numbers have been checked against the table.
int IntOf(const Json& line, const char* name, int otherwise) {
  const auto found = line.find(name);
  return found == line.end() ? otherwise : found->get<int>();
}

std::string TextOf(const Json& line, const char* name) {
  const auto found = line.find(name);
  return found == line.end() ? "" : found->get<std::string>();
}

std::chrono::nanoseconds WallOf(const Json& line) {
  absl::Time time;
  (void)absl::ParseTime("%Y-%m-%dT%H:%M:%E3SZ", TextOf(line, "time"), &time, nullptr);
  return absl::ToChronoNanoseconds(time - absl::UnixEpoch());
}

LoggedEvent EventOf(const Json& line, AgentEventKind kind) {
  LoggedEvent event{.kind = kind,
                    .wall = WallOf(line),
                    .monotonic = std::chrono::nanoseconds(
                        std::llround(line.find("monotonic")->get<double>() * 1e6) * 1000),
                    .rank = IntOf(line, "rank", -1),
                    .cause = TextOf(line, "cause"),
                    .workers = IntOf(line, "workers", 0)};
  if (const auto round = line.find("round"); round != line.end()) {
    event.round = round->get<rendezvous::RoundNumber>();
  }
  if (kind == AgentEventKind::kAssigned) {
    EventPlace place{.node_rank = IntOf(line, "node_rank", 0),
                     .nodes = IntOf(line, "nodes", 1),
                     .first_rank = IntOf(line, "first_rank", 0),
                     .world_size = IntOf(line, "world_size", 1)};
    (void)absl::SimpleHexAtoi(TextOf(line, "incarnation"), &place.incarnation);
    event.place = place;
  }
  return event;
}

// One log while it is read, line by line.
class Reading {
 public:
  explicit Reading(const std::string& name) : name_(name) {}

  absl::Status Take(absl::string_view text, int number, bool is_whole) {
    if (text.empty()) return absl::OkStatus();
    const Json line = base::ParseJson({text.data(), text.size()});
    if (line.is_discarded() && !is_whole) {
      Note("its last line was torn off");
      return absl::OkStatus();
    }
    absl::Status status = CheckVersion(line);
    if (!status.ok()) return status;
    status = line.is_discarded() ? absl::InvalidArgumentError("the line is no JSON")
                                 : CheckEventLine(line, MoreFields::kIgnored);
    if (absl::IsNotFound(status)) {
      ++unknown_[TextOf(line, "event")];
    } else if (!status.ok()) {
      if (unread_++ == 0) first_unread_ = absl::StrCat("line ", number, ": ", status.message());
    } else {
      Keep(line);
    }
    return absl::OkStatus();
  }

  EventFile Finish() && {
    if (unread_ > 0) {
      Note(absl::StrCat(base::Count(unread_, "line"),
                        unread_ == 1 ? " is no event and is" : " are no events and are",
                        " left out (", first_unread_, ")"));
    }
    if (!unknown_.empty()) {
      std::vector<std::string> names;
      for (const auto& [event, count] : unknown_) names.push_back(absl::StrCat(event, " ", count));
      Note(absl::StrCat("events that this version does not know are left out: ",
                        base::ShortList(names)));
    }
    for (const NodeEvents& node : file_.nodes) {
      if (opened_.count(node.node) == 0) {
        Note(absl::StrCat("the log of node ", node.node,
                          " has no beginning; it is read as version ", kEventLogVersion));
      }
    }
    return std::move(file_);
  }

 private:
  void Note(absl::string_view sentence) {
    file_.notes.push_back(absl::StrCat(name_, ": ", sentence));
  }

  // Before anything else, as a newer version may say it all in other fields.
  absl::Status CheckVersion(const Json& line) const {
    if (!line.is_object()) return absl::OkStatus();
    const auto version = line.find("version");
    if (version == line.end() || !version->is_number_integer()) return absl::OkStatus();
    if (version->get<std::int64_t>() <= kEventLogVersion) return absl::OkStatus();
    const auto muster = line.find("muster");
    const bool is_told = muster != line.end() && muster->is_string();
    return absl::FailedPreconditionError(absl::StrCat(
        "read the event log ", name_, ": it has version ", version->get<std::int64_t>(),
        " of the format, and this muster reads version ", kEventLogVersion, "; use muster ",
        is_told ? muster->get<std::string>() : "of the version that wrote it", " or newer"));
  }

  void Keep(const Json& line) {
    const std::string node = TextOf(line, "node");
    const EventRow* const row = FindEvent(TextOf(line, "event"));
    const auto [at, is_new] = index_.try_emplace(node, file_.nodes.size());
    if (is_new) file_.nodes.push_back({.job = TextOf(line, "job"), .node = node, .events = {}});
    if (row->kind == AgentEventKind::kLogOpened) opened_.insert(node);
    file_.nodes[at->second].events.push_back(EventOf(line, row->kind));
  }

  const std::string name_;
  EventFile file_;
  std::map<std::string, std::size_t> index_;  // of file_.nodes, by node
  std::set<std::string> opened_;              // the nodes whose logs begin in this file
  std::map<std::string, int> unknown_;        // how many events of each name
  std::size_t unread_ = 0;
  std::string first_unread_;
};

}  // namespace

absl::StatusOr<EventFile> ReadEvents(const std::string& name, absl::string_view text) {
  Reading reading(name);
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const bool is_whole = end != absl::string_view::npos;
    const absl::Status status = reading.Take(text.substr(0, end), number, is_whole);
    if (!status.ok()) return status;
    text.remove_prefix(is_whole ? end + 1 : text.size());
  }
  EventFile file = std::move(reading).Finish();
  if (file.nodes.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("read the event log ", name,
                     ": there is no event in it; give files that muster run "
                     "--event-log=FILE has written"));
  }
  return file;
}

}  // namespace muster::launcher

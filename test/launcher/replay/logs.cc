#include "test/launcher/replay/logs.h"

#include <cstdlib>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "launcher/replay/agent_event.h"
#include "launcher/replay/event_file.h"
#include "launcher/replay/job_events.h"
#include "test/support/temp_dir.h"

namespace muster::test {
namespace {

using namespace launcher;  // NOLINT: all of it is about the launcher

template <typename Value>
Value Sure(absl::StatusOr<Value> value) {
  if (value.ok()) return *std::move(value);
  std::cerr << value.status() << "\n";
  std::abort();
}

}  // namespace

std::string LogText(const std::string& name) {
  return ReadAll("test/launcher/replay/testdata/" + name);
}

Timeline TimelineOf(const std::vector<std::string>& names) {
  std::vector<EventFile> files;
  for (const std::string& name : names) files.push_back(Sure(ReadEvents(name, LogText(name))));
  return MakeTimeline(Sure(ChooseJob(std::move(files), "")));
}

Timeline TimelineOfTexts(const std::vector<std::string>& texts) {
  std::vector<EventFile> files;
  for (const std::string& text : texts) {
    files.push_back(Sure(ReadEvents(absl::StrCat("log ", files.size()), text)));
  }
  return MakeTimeline(Sure(ChooseJob(std::move(files), "")));
}

AgentLog::AgentLog(std::string node, int workers, std::chrono::milliseconds wall,
                   std::chrono::milliseconds monotonic)
    : node_(std::move(node)), workers_(workers), wall_(wall), monotonic_(monotonic) {
  At(0, {.kind = AgentEventKind::kLogOpened});
}

AgentLog& AgentLog::At(int ms, const AgentEvent& event) {
  const std::chrono::milliseconds passed(ms);
  absl::StrAppend(&text_,
                  EventLine(event, {.job = "j7", .node = node_, .workers = workers_},
                            std::chrono::system_clock::time_point(wall_ + passed),
                            std::chrono::steady_clock::time_point(monotonic_ + passed)),
                  "\n");
  return *this;
}

AgentLog& AgentLog::Assigned(int ms, int round, int node_rank, int nodes, int workers_in_all) {
  return At(ms, {.kind = AgentEventKind::kAssigned,
                 .round = round,
                 .cause = "keeps its rank",
                 .place = EventPlace{.incarnation = 7,
                                     .node_rank = node_rank,
                                     .nodes = nodes,
                                     .first_rank = node_rank * workers_,
                                     .world_size = workers_in_all}});
}

}  // namespace muster::test

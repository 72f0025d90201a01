// Event logs for tests: those of real runs, and lines as an agent writes them.
#pragma once

#include <string>
#include <vector>

#include "launcher/replay/timeline.h"

namespace muster::test {

// The text of a transcript in testdata.
std::string LogText(const std::string& name);

// The timeline of transcripts in testdata; aborts the test on an error.
launcher::Timeline TimelineOf(const std::vector<std::string>& names);
// The same for texts, as files "log 0", "log 1", ...
launcher::Timeline TimelineOfTexts(const std::vector<std::string>& texts);

// One agent's log, line by line. Its clocks start at `wall` and `monotonic`.
class AgentLog {
 public:
  AgentLog(std::string node, int workers, std::chrono::milliseconds wall = kNoon,
           std::chrono::milliseconds monotonic = std::chrono::seconds(100));

  // Adds an event `ms` milliseconds after the start.
  AgentLog& At(int ms, const launcher::AgentEvent& event);
  // Assigns the node a place in a round; its first rank follows those of the nodes before it.
  AgentLog& Assigned(int ms, int round, int node_rank, int nodes, int workers_in_all);

  const std::string& text() const { return text_; }

  static constexpr std::chrono::milliseconds kNoon{1764072000000};

 private:
  const std::string node_;
  const int workers_;
  const std::chrono::milliseconds wall_;
  const std::chrono::milliseconds monotonic_;
  std::string text_;
};

}  // namespace muster::test

// Event logs for tests: those of real runs, and lines as an agent writes them.
#pragma once

#include <string>
#include <vector>

#include "launcher/replay/timeline.h"

namespace muster::test {

// The text of a transcript in testdata.
std::string LogText(const std::string& name);

// The timeline of transcripts in testdata; aborts the test if there is an error.
launcher::Timeline TimelineOf(const std::vector<std::string>& names);
// The same of texts, as files "log 0", "log 1", ...
launcher::Timeline TimelineOfTexts(const std::vector<std::string>& texts);

// The log of one agent, line by line. Its clocks begin at `wall` and `monotonic`.
class AgentLog {
 public:
  AgentLog(std::string node, int workers, std::chrono::milliseconds wall = kNoon,
           std::chrono::milliseconds monotonic = std::chrono::seconds(100));

  // Both clocks stand at so many milliseconds after their beginning.
  AgentLog& At(int ms, const launcher::AgentEvent& event);
  // The node has this place in a round, with its first rank after those of the nodes before it.
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

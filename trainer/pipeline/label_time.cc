#include "trainer/pipeline/label_time.h"

#include <algorithm>

namespace muster::trainer {

Milliseconds LabelTime(const PipelineTimeline& timeline) {
  Milliseconds shortest = timeline.step;
  Milliseconds longest{0};
  for (const RankTimeline& rank : timeline.ranks) {
    for (const TimedAction& timed : rank.actions) {
      const Milliseconds length = timed.end - timed.start;
      if (length > Milliseconds(0)) shortest = std::min(shortest, length);
      longest = std::max(longest, length);
    }
  }
  return std::max(shortest, longest / 20);
}

}  // namespace muster::trainer

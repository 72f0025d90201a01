// The scale of a drawing of a step.
#pragma once

#include "trainer/pipeline/simulation.h"

namespace muster::trainer {

// The time that has to get as much room as a label needs: that of the shortest action, so that each
// can be named; but not less than a twentieth of the longest one, so that the drawing stays of a
// size that can be looked at. Actions that take no time do not count.
Milliseconds LabelTime(const PipelineTimeline& timeline);

}  // namespace muster::trainer

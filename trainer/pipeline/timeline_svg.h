// A step of a pipeline, drawn as a picture.
#pragma once

#include <string>

#include "trainer/pipeline/simulation.h"

namespace muster::trainer {

// The step as an SVG that needs nothing else: a row for each rank, a box with the micro-batch's
// number for each action, as wide as it takes long, in a color for each kind of pass, from light to
// dark by chunk; an axis of time, a legend, and `title` (plain text) above. A browser shows what a
// box is, and its times, when the mouse is over it.
std::string TimelineSvg(const PipelineTimeline& timeline, const std::string& title);

}  // namespace muster::trainer

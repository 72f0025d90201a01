// Draws a step of a pipeline as a picture.
#pragma once

#include <string>

#include "trainer/pipeline/simulation.h"

namespace muster::trainer {

// The step as a self-contained SVG: a row per rank, a box with the micro-batch's number for each
// action, proportional to its duration, in a color for each kind of pass, from light to dark by
// chunk; a time axis, a legend, and `title` (plain text) above. Browsers show an action and its
// times as a tooltip.
std::string TimelineSvg(const PipelineTimeline& timeline, const std::string& title);

// Draws a step of a pipeline as text.

// A line for each rank, as in the papers, where a column is a fixed time:
//   rank 0  F0 F1       B0---    B1---
//   rank 1     F0 B0--- F1 B1---
// The number is the micro-batch; if ranks have several chunks, it is followed by a letter for the
// chunk, or with more than 26 by ".N". Dashes fill up actions longer than their label, and blanks
// are the bubble. A step wider than `width` columns is split into several drawings, one below the
// other, each with its start time; after twelve of them a sentence describes what is left out.
std::string TimelineText(const PipelineTimeline& timeline, int width);

// The scale for drawing a step.

// The time that gets as much room as a label needs: that of the shortest action, so that each can
// be labelled; but at least a twentieth of the longest one, to limit the size of the drawing.
// Actions of zero duration do not count.
Milliseconds LabelTime(const PipelineTimeline& timeline);

}  // namespace muster::trainer

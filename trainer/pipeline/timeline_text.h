// A step of a pipeline, drawn in letters.
#pragma once

#include <string>

#include "trainer/pipeline/simulation.h"

namespace muster::trainer {

// A line for each rank, as the papers draw it, where a column is a fixed time:
//   rank 0  F0 F1       B0---    B1---
//   rank 1     F0 B0--- F1 B1---
// The number is the micro-batch; where ranks have several chunks, a letter behind it is the chunk,
// or with more than 26 ".N". What takes longer than its label is filled up with dashes, and blanks
// are the bubble. What is wider than `width` columns is cut into several drawings, one below the
// other, each with the time at which it begins; after twelve of them one sentence says what is left
// out.
std::string TimelineText(const PipelineTimeline& timeline, int width);

}  // namespace muster::trainer

// What a timeline does not know: nodes without a log, and logs that end too early.
#pragma once

#include "launcher/replay/timeline.h"

namespace muster::launcher {

// Adds a note for each gap, and for what was done about the clocks. Many of one kind share a note.
void NoteGaps(Timeline& timeline);

}  // namespace muster::launcher

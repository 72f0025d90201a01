// SIGTERM as a wish that the training loop can look at.
#pragma once

namespace muster::trainer {

// From now on the first SIGTERM is only remembered, so that the training can end after a whole step
// with a checkpoint; the second one ends the process at once, as it would have without this. To be
// called once, before threads that block signals are started.
void RememberStopSignal();

// Whether SIGTERM has come. Any thread.
bool StopAsked();

}  // namespace muster::trainer

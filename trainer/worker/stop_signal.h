// SIGTERM as a flag that the training loop checks.
#pragma once

namespace muster::trainer {

// From now on the first SIGTERM only sets a flag, so that the training can finish its step and save
// a checkpoint. The second one ends the process at once, as usual. Call it once, before threads
// that block signals are started.
void RememberStopSignal();

// Whether SIGTERM has been received. Thread-safe.
bool StopAsked();

}  // namespace muster::trainer

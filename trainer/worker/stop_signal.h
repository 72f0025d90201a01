// SIGTERM, SIGINT (Ctrl-C) and SIGHUP (the terminal is closed) as a request that the training loop
// checks.
#pragma once

#include <csignal>

namespace muster::trainer {

inline constexpr int kStopSignals[] = {SIGTERM, SIGINT, SIGHUP};

// From now on each of these signals ends the process at once, with StopExitCode(): before the
// training there is nothing to save, and LibTorch goes on waiting for other ranks after a signal. A
// signal that was ignored when the process started (nohup, or `&` in a script) stays ignored. Call
// it once.
void EndOnStopSignals();

// From now on the first of these signals is only remembered, so that the training can finish its
// step and save a checkpoint. Call it after EndOnStopSignals().
//
// One request may arrive twice: on Ctrl-C the terminal sends SIGINT to its whole foreground, and a
// launcher there forwards it. So the terminal, the parent process and everybody else may each ask
// once. Whoever asks again ends the process at once, and nothing is saved.
void RememberStopSignals();

// The first signal that was received; 0 while there is none. Thread-safe.
int StopSignal();

// The exit code of a process that `signal` ended, as shells report it: 143 for SIGTERM, 130 for
// SIGINT, 129 for SIGHUP.
constexpr int StopExitCode(int signal) {
  return 128 + signal;
}

}  // namespace muster::trainer

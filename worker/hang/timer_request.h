// What a worker writes to the watchdog's FIFO: one line of JSON for each timer that it starts,
// moves or ends.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace muster::worker {

// As torch.distributed.elastic.timer.FileTimerRequest.to_json writes it:
// {"version": 1, "pid": 17, "scope_id": "step", "expiration_time": 1700000000.5, "signal": 9}.
struct TimerRequest {
  pid_t pid = 0;
  // Names the timer among those of this process.
  std::string scope;
  // Unix time in seconds; below zero: the timer ends.
  double expiration_time = 0;
  // What the process gets when the timer expires; 0 or less: nothing.
  int signal = 0;

  bool IsRelease() const { return expiration_time < 0; }

  bool operator==(const TimerRequest&) const = default;
};

// nullopt when the line is not such a request. Numbers may be given as text; a missing signal is
// SIGKILL, as in PyTorch.
std::optional<TimerRequest> ParseTimerRequest(std::string_view line);

}  // namespace muster::worker

// How far the training is, shown to the person who waits for it.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

namespace muster::trainer {

// Where the training stands after a step.
struct Standing {
  int epoch = 1;  // counted from 1
  int epochs = 1;
  std::int64_t step = 0;  // of this epoch
  std::int64_t steps = 1;
  double loss = 0;                // mean over the steps since the last one that was shown
  double samples_per_second = 0;  // over this epoch so far, all ranks together
  const char* unit = "images";    // what a sample is
  double seconds_left = 0;        // until the end of the training, without evaluation
};

// "12 s", "3 min 05 s", "2 h 05 min".
std::string FormatSeconds(double seconds);

// Shows standings on one stream: as a bar that redraws itself on a terminal, else as a plain line
// each time another tenth of the epoch is done, so that a log file stays readable. Used by one rank
// only.
class Progress {
 public:
  // `out` must outlive this object.
  Progress(std::ostream& out, bool terminal) : out_(out), terminal_(terminal) {}

  // Shows `standing`, or nothing when it is too soon; says which. The last step of an epoch is
  // always shown.
  bool Show(const Standing& standing);

  // Writes a line of its own, ending the bar's line first.
  void Say(const std::string& line);

 private:
  std::ostream& out_;
  const bool terminal_;
  bool bar_open_ = false;          // the cursor stands on the bar's line
  std::int64_t shown_tenths_ = 0;  // of the current epoch
};

}  // namespace muster::trainer

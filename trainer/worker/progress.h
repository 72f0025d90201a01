// Shows the progress of the training.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

namespace muster::trainer {

// The state of the training after a step.
struct Standing {
  int epoch = 1;  // counted from 1
  int epochs = 1;
  std::int64_t step = 0;  // of this epoch
  std::int64_t steps = 1;
  double loss = 0;                // mean over the steps since Show() last returned true
  double samples_per_second = 0;  // in this epoch so far, all ranks together
  const char* unit = "images";    // the name of samples
  double seconds_left = 0;        // until the end of the training, excluding evaluation
};

// "12 s", "3 min 05 s", "2 h 05 min".
std::string FormatSeconds(double seconds);

// On a terminal, draws a progress bar. Otherwise prints a line for each tenth of an epoch, so that
// log files stay readable. For one rank only.
class Progress {
 public:
  // `out` must outlive this object.
  Progress(std::ostream& out, bool terminal) : out_(out), terminal_(terminal) {}

  // Shows `standing`, unless it is too early for the next line. Returns whether it did. The last
  // step of an epoch is always shown.
  bool Show(const Standing& standing);

  // Prints `line` separately, below an unfinished bar. Control characters in it, except line feeds,
  // are shown as '?'.
  void Say(const std::string& line);

 private:
  std::ostream& out_;
  const bool terminal_;
  bool bar_open_ = false;          // the cursor is on the bar's line
  std::int64_t shown_tenths_ = 0;  // of the current epoch
};

// Makes text safe to show on a terminal.

// `text` with '?' for each invisible character (base/safe_text.h), including tabs and line feeds,
// such as file names may contain: they could break lines, command the terminal or deceive the
// reader. Keeps line feeds if `lines`.
std::string Printable(std::string_view text, bool lines = false);

}  // namespace muster::trainer

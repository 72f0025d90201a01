// Formats text and times for terminals and tables.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace muster::base {

// A duration, or how long ago something was: as Seconds() (base/text.h) up to two minutes, then "5
// min 12 s", "2 h 05 min", "3 d 04 h". The page has the same rule (rendezvous/pages/page/page.js).
std::string Elapsed(std::chrono::nanoseconds duration);

// A measured duration in three digits: "12.4 ms", "1.21 s"; from 1,000 s on as Elapsed().
std::string Measured(std::chrono::duration<double> duration);

// A program's output on one line, as a terminal would have left it: a progress bar's last state,
// without colours, with tabs expanded. Other control characters become ^X, a line feed a space, and
// everything else that is not safe to show (base/safe_text.h) '?'.
std::string TerminalLine(std::string_view bytes);

// The columns that text takes on a terminal, if it is safe to show: none for combining marks, two
// for Chinese, Japanese and Korean characters and emoji, one for all others.
int Columns(std::string_view text);
// The longest beginning that fits into `columns`.
std::string CutTo(std::string_view text, int columns);
// Cuts or pads the text to exactly `columns`.
std::string PadTo(std::string_view text, int columns);

}  // namespace muster::base

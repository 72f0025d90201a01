// Phrases for sentences that people read, so that status page, log and terminal use the same words.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::base {

// "1 node", "3 nodes".
std::string Count(std::size_t n, const char* noun);

// "600 s", "3.2 s", "250 ms"; whole seconds from ten on. A negative duration counts as zero.
std::string Seconds(std::chrono::nanoseconds duration);

// How a process ended, to follow its name: "exited with code 3", or "was killed by SIGKILL" if
// `signal` is not 0.
std::string ExitPhrase(int exit_code, int signal);

// How many items ShortList names if more than one must be left out.
inline constexpr std::size_t kShown = 8;

// The items separated by commas, cut after eight: "a, b, c, d, e, f, g, h and 56 more".
std::string ShortList(const std::vector<std::string>& items);
// The same for a list of `count` items; `first` holds its first nine, or all if there are fewer.
std::string ShortList(const std::vector<std::string>& first, std::size_t count);

// Signal names.

// SIGTERM for "SIGTERM" or "TERM", as `kill -l` prints it. nullopt if no signal has that name.
std::optional<int> ParseSignal(absl::string_view name);

// "SIGSEGV"; "SIGRTMIN+3"; "signal 99" for a number without a name.
std::string SignalName(int signal);

// Rows of text as a table for people.

// One line per row, in aligned columns two spaces apart; the last column is not padded. Every row
// must have as many cells as the first. An empty cell becomes "-"; cells are made safe by
// SafeLine().
std::string TextTable(std::vector<std::vector<std::string>> rows);

// Suggests what a user meant by a mistyped word.

// The one of `words` most like `word`: "status" for "stauts", "--rdzv-endpoint" for
// "--rdvz_endpoint", and "--nproc-per-node" for the shortened "--nprocs". Leading dashes are
// ignored, and '_' equals '-'. Empty if none is similar.
absl::string_view NearestWord(absl::string_view word, const std::vector<absl::string_view>& words);

// The order in which people list names that have numbers in them: node7 before node66.

// Appends a sort key of `text` to `key`. Compared bytewise, keys order runs of digits as numbers of
// any length and everything else by its bytes.
void AppendNatural(std::string_view text, std::string* key);

// Random names.

// `length` characters out of [a-z0-9], at most 256, from the kernel's random numbers.
std::string RandomName(int length);

// Formats text and times for terminals and tables.

// A duration, or how long ago something was: as Seconds() up to two minutes, then "5
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

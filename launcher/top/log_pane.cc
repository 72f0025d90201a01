#include "launcher/top/log_pane.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster::launcher {
namespace {

using Source = LogLine::Source;
using Tone = Style::Tone;

// "2> " and the like.
constexpr int kSourceColumns = 3;

// Where the rows of each line are, when all of them are below one another.
class LogRows {
 public:
  LogRows(const RankLog& log, const ScreenSize& room)
      : gone_(log.gone),
        room_({.columns = std::max(room.columns - kSourceColumns, 1),
               .rows = std::max(room.rows, 1)}),
        lines_(LinesOf(log)) {
    ends_.reserve(lines_.size());
    for (const LogLine& line : lines_) ends_.push_back(count() + RowsOf(line));
  }

  int count() const { return ends_.empty() ? 0 : ends_.back(); }
  int room() const { return room_.rows; }
  // The first row, when the last ones are seen.
  int last_top() const { return std::max(count() - room_.rows, 0); }

  int RowAt(const std::optional<LogPlace>& top) const {
    if (!top) return last_top();
    // What is gone begins where the first line does.
    if (top->line < gone_) return 0;
    const auto line = static_cast<std::size_t>(top->line - gone_);
    if (line >= lines_.size()) return last_top();
    return std::min({Begin(line) + top->piece, ends_[line] - 1, last_top()});
  }

  LogPlace PlaceOf(int row) const {
    const std::size_t line = LineAt(row);
    return {.line = gone_ + static_cast<std::int64_t>(line), .piece = row - Begin(line)};
  }

  std::vector<ScreenLine> Draw(int top) const {
    std::vector<ScreenLine> rows;
    for (int row = top; row < std::min(top + room_.rows, count());) {
      const std::size_t line = LineAt(row);
      const std::vector<std::string> pieces = Broken(lines_[line].text, room_.columns);
      for (; row < ends_[line] && row < top + room_.rows; ++row) {
        const int piece = row - Begin(line);
        rows.push_back(RowOf(lines_[line].source, piece, pieces[static_cast<std::size_t>(piece)]));
      }
    }
    return rows;
  }

 private:
  int RowsOf(const LogLine& line) const {
    // Most are.
    if (static_cast<int>(line.text.size()) <= room_.columns) return 1;
    return static_cast<int>(Broken(line.text, room_.columns).size());
  }

  static ScreenLine RowOf(Source source, int piece, std::string text) {
    const char* const mark = piece > 0                   ? "   "
                             : source == Source::kStderr ? "2> "
                             : source == Source::kMuster ? "-- "
                                                         : "   ";
    const Style style{.tone = source == Source::kMuster ? Tone::kFaint : Tone::kPlain};
    return {{mark, {.tone = Tone::kFaint}}, {std::move(text), style}};
  }

  int Begin(std::size_t line) const { return line == 0 ? 0 : ends_[line - 1]; }
  std::size_t LineAt(int row) const {
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), row);
    return static_cast<std::size_t>(end - ends_.begin());
  }

  const std::int64_t gone_;
  const ScreenSize room_;
  const std::vector<LogLine> lines_;
  // Of each line the row behind its last.
  std::vector<int> ends_;
};

}  // namespace

LogPane DrawLog(const RankLog& log, const std::optional<LogPlace>& top, const ScreenSize& room) {
  const LogRows rows(log, room);
  if (rows.count() == 0) {
    const std::string wait = absl::StrCat("waiting for what rank ", log.rank, " prints");
    return {.rows = {{{wait, {.tone = Tone::kFaint}}}}, .note = ""};
  }
  const int first = rows.RowAt(top);
  LogPane pane{.rows = rows.Draw(first)};
  if (rows.count() <= rows.room()) return pane;
  const int last = std::min(first + rows.room(), rows.count());
  pane.note = absl::StrCat("rows ", first + 1, " to ", last, " of ", rows.count(),
                           top ? ", f: the last ones" : "");
  return pane;
}

std::optional<LogPlace> Scrolled(const RankLog& log, const std::optional<LogPlace>& top,
                                 const ScreenSize& room, int by) {
  const LogRows rows(log, room);
  const int row = std::max(rows.RowAt(top) + by, 0);
  if (row >= rows.last_top()) return std::nullopt;
  return rows.PlaceOf(row);
}

}  // namespace muster::launcher

#include "launcher/top/rank_log.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

#include "base/text.h"
#include "rendezvous/core/values/phrases.h"

namespace muster::launcher {
namespace {

using rendezvous::LogNotice;
using rendezvous::LogRound;
using rendezvous::LogStream;
using rendezvous::LogText;
using Source = LogLine::Source;

void AddLine(RankLog& log, Source source, std::string text) {
  log.lines.push_back({source, std::move(text)});
  if (log.lines.size() <= RankLog::kMostLines) return;
  log.lines.pop_front();
  ++log.gone;
}

Source SourceOf(std::size_t stream) {
  return stream == 0 ? Source::kStdout : Source::kStderr;
}

// Takes one line's worth of bytes, without splitting a UTF-8 character.
std::string TakePiece(std::string& bytes) {
  std::size_t end = bytes.size();
  while (end > 1 && (static_cast<unsigned char>(bytes[end - 1]) & 0xC0) == 0x80) --end;
  const bool cuts = static_cast<unsigned char>(bytes[end - 1]) >= 0xC0;
  std::string rest = cuts && end > 1 ? bytes.substr(end - 1) : "";
  bytes.resize(bytes.size() - rest.size());
  return std::exchange(bytes, std::move(rest));
}

void Take(RankLog& log, const LogText& text) {
  const std::size_t stream = text.stream == LogStream::kStdout ? 0 : 1;
  RankLog::Begun& begun = log.begun[stream];
  for (const char byte : text.bytes) {
    if (byte == '\n') {
      AddLine(log, SourceOf(stream), base::TerminalLine(begun.bytes));
      begun = {};
      continue;
    }
    if (byte == '\r') {
      begun.has_returned = true;
      continue;
    }
    if (std::exchange(begun.has_returned, false)) begun.bytes.clear();
    begun.bytes += byte;
    if (begun.bytes.size() < RankLog::kMostLineBytes) continue;
    AddLine(log, SourceOf(stream), base::TerminalLine(TakePiece(begun.bytes)));
  }
}

// Ends lines that the worker will not complete.
void EndLines(RankLog& log) {
  for (std::size_t i = 0; i < log.begun.size(); ++i) {
    const RankLog::Begun begun = std::exchange(log.begun[i], {});
    if (!begun.bytes.empty()) AddLine(log, SourceOf(i), base::TerminalLine(begun.bytes));
  }
}

void Take(RankLog& log, const LogNotice& notice) {
  AddLine(log, Source::kMuster, base::TerminalLine(notice.sentence));
}

void Take(RankLog& log, const LogRound& round) {
  EndLines(log);
  AddLine(log, Source::kMuster,
          absl::StrCat("round ", round.round,
                       round.reason.empty() ? "" : " begins: ", base::TerminalLine(round.reason)));
}

}  // namespace

rendezvous::LogRequest RequestFor(const RankLog& log) {
  return {
      .run_id = log.run_id,
      .ranks = {{log.rank, log.rank}},
      .previous = log.of_round_before,
      .extent = {.tail = static_cast<int>(RankLog::kMostLines), .follow = !log.of_round_before}};
}

void OnLogPart(RankLog& log, const rendezvous::LogPart& part) {
  std::visit([&log](const auto& kind) { Take(log, kind); }, part);
}

void OnLogOutage(RankLog& log, const std::string& why) {
  AddLine(log, Source::kMuster, absl::StrCat(base::TerminalLine(why), "; it goes on here"));
}

void OnLogEnd(RankLog& log, const absl::Status& status) {
  EndLines(log);
  log.end = status.ok()                   ? RankLog::End::kAllTold
            : absl::IsUnavailable(status) ? RankLog::End::kCutOff
                                          : RankLog::End::kFailed;
  const std::string rank = absl::StrCat("rank ", log.rank);
  AddLine(log, Source::kMuster,
          !status.ok() ? base::TerminalLine(std::string(status.message()))
          : log.of_round_before
              ? absl::StrCat("end of what ", rank, " printed in the round before")
              : absl::StrCat("the job has ended; ", rank, " prints nothing more"));
}

std::vector<LogLine> LinesOf(const RankLog& log) {
  std::vector<LogLine> lines(log.lines.begin(), log.lines.end());
  for (std::size_t i = 0; i < log.begun.size(); ++i) {
    if (log.begun[i].bytes.empty()) continue;
    lines.push_back({SourceOf(i), base::TerminalLine(log.begun[i].bytes)});
  }
  return lines;
}

namespace {

using Tone = Style::Tone;

// "2> " and the like.
constexpr int kSourceColumns = 3;

// The screen rows of all lines, stacked.
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
  // The first visible row when the last rows are visible.
  int last_top() const { return std::max(count() - room_.rows, 0); }

  int RowAt(const std::optional<LogPlace>& top) const {
    if (!top) return last_top();
    // A line that was dropped counts as the first line.
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
    // Most lines take this shortcut: they fit.
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
  // For each line, the row after its last.
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

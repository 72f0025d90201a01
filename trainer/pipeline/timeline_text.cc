#include "trainer/pipeline/timeline_text.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "trainer/pipeline/label_time.h"

namespace muster::trainer {
namespace {

constexpr int kMostDrawings = 12;
constexpr int kLetters = 26;
// Of a label that is cut, beside 1 for an action that is: more than any number of ranks.
constexpr std::size_t kLabelHarm = 1'000'000;

std::string LabelOf(const PipelineAction& action, int chunks) {
  const std::string label = absl::StrCat(std::string(1, LetterOf(action.kind)), action.micro_batch);
  if (chunks == 1) return label;
  if (chunks > kLetters) return absl::StrCat(label, ".", action.chunk);
  return absl::StrCat(label, std::string(1, static_cast<char>('a' + action.chunk)));
}

std::size_t LongestLabel(const PipelineTimeline& timeline) {
  std::size_t longest = 0;
  for (const RankTimeline& rank : timeline.ranks) {
    for (const TimedAction& timed : rank.actions) {
      longest = std::max(longest, LabelOf(timed.action, timeline.shape.chunks).size());
    }
  }
  return longest;
}

// The whole step on lines of any length.
class Canvas {
 public:
  explicit Canvas(const PipelineTimeline& timeline)
      : column_(LabelTime(timeline) / static_cast<double>(LongestLabel(timeline) + 1)),
        columns_(ColumnOf(timeline.step)),
        harm_(columns_ + 1) {
    for (const RankTimeline& rank : timeline.ranks) {
      std::string line(columns_, ' ');
      for (const TimedAction& timed : rank.actions) Draw(timed, timeline.shape.chunks, line);
      lines_.push_back(std::move(line));
    }
  }

  std::size_t columns() const { return columns_; }
  Milliseconds TimeAt(std::size_t column) const { return column_ * static_cast<double>(column); }
  // The columns [begin, end) of a rank, without blanks at the end.
  std::string Cut(std::size_t rank, std::size_t begin, std::size_t end) const {
    return std::string(absl::StripTrailingAsciiWhitespace(
        absl::string_view(lines_[rank]).substr(begin, end - begin)));
  }
  // Where to cut what begins at `begin` and has room for `room` columns: where the fewest labels,
  // and then the fewest actions, go on behind the cut.
  std::size_t CutBehind(std::size_t begin, std::size_t room) const {
    if (begin + room >= columns_) return columns_;
    std::size_t best = begin + room;
    for (std::size_t end = best; end > begin + room * 3 / 4; --end) {
      if (harm_[end] < harm_[best]) best = end;
    }
    return best;
  }

 private:
  std::size_t ColumnOf(Milliseconds time) const {
    return static_cast<std::size_t>(std::llround(time / column_));
  }

  void Draw(const TimedAction& timed, int chunks, std::string& line) {
    const std::size_t begin = ColumnOf(timed.start);
    const std::size_t end = ColumnOf(timed.end);
    if (end <= begin) return;
    // A blank at its end keeps an action apart from the next one.
    const std::size_t drawn = std::max<std::size_t>(end - begin - 1, 1);
    const std::string label = LabelOf(timed.action, chunks).substr(0, drawn);
    line.replace(begin, drawn, label + std::string(drawn - label.size(), '-'));
    for (std::size_t inside = 1; inside < drawn; ++inside) {
      harm_[begin + inside] += inside < label.size() ? kLabelHarm : 1;
    }
  }

  const Milliseconds column_;
  const std::size_t columns_;
  std::vector<std::size_t> harm_;  // that a cut ahead of a column does
  std::vector<std::string> lines_;
};

}  // namespace

std::string TimelineText(const PipelineTimeline& timeline, int width) {
  const Canvas canvas(timeline);
  const std::size_t name_width = absl::StrCat("rank ", timeline.shape.stages - 1, "  ").size();
  const std::size_t most =
      std::max(static_cast<std::size_t>(std::max(width, 0)), 2 * name_width) - name_width;
  // Drawings of about the same width, rather than a last one with a remnant. An eighth more, as
  // cuts come early.
  const std::size_t drawings = (canvas.columns() + most - 1) / most;
  const std::size_t even = canvas.columns() / drawings + 1;
  const std::size_t room = std::min(most, even + even / 8);
  std::string text;
  std::size_t begin = 0;
  for (int drawing = 0; begin < canvas.columns(); ++drawing) {
    const std::string time = absl::StrFormat("%.4g ms", canvas.TimeAt(begin).count());
    if (drawing == kMostDrawings) {
      absl::StrAppend(&text, "what follows, from ", time,
                      absl::StrFormat(" to %.4g ms, is not drawn\n", timeline.step.count()));
      break;
    }
    const std::size_t end = canvas.CutBehind(begin, room);
    if (drawing > 0) absl::StrAppend(&text, "from ", time, "\n");
    for (std::size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
      const std::string name = absl::StrCat("rank ", rank);
      const std::string line = absl::StrCat(name, std::string(name_width - name.size(), ' '),
                                            canvas.Cut(rank, begin, end));
      absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(line), "\n");
    }
    begin = end;
  }
  return text;
}

}  // namespace muster::trainer

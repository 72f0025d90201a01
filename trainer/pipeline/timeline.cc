#include "trainer/pipeline/timeline.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace muster::trainer {
namespace {

// In pixels.
constexpr double kLeft = 66;  // of the ranks' names
constexpr double kRight = 24;
constexpr double kTop = 40;
constexpr double kRow = 26;
constexpr double kBox = 22;
constexpr double kNarrowest = 560;  // room for title and legend
constexpr double kDigit = 7;

struct Color {
  int red = 0;
  int green = 0;
  int blue = 0;
};

struct Look {
  const char* name;
  Color light;
  Color dark;
};

Look LookOf(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
      return {"forward", {201, 222, 246}, {101, 160, 226}};
    case ActionKind::kBackward:
      return {"backward", {203, 233, 196}, {111, 184, 98}};
    case ActionKind::kBackwardInput:
      return {"backward of inputs", {203, 233, 196}, {111, 184, 98}};
    case ActionKind::kBackwardWeight:
      return {"backward of weights", {253, 226, 178}, {238, 171, 72}};
  }
  return {};
}

std::string ColorOf(ActionKind kind, int chunk, int chunks) {
  const Look look = LookOf(kind);
  const double share = chunks == 1 ? 0.5 : static_cast<double>(chunk) / (chunks - 1);
  const auto mixed = [share](int light, int dark) {
    return static_cast<int>(std::lround(light + (dark - light) * share));
  };
  return absl::StrFormat("#%02x%02x%02x", mixed(look.light.red, look.dark.red),
                         mixed(look.light.green, look.dark.green),
                         mixed(look.light.blue, look.dark.blue));
}

// Pixels, to a hundredth.
std::string Px(double pixels) {
  return absl::StrCat(std::round(pixels * 100) / 100);
}

std::string Box(double x, double y, double width, double height, const std::string& color) {
  return absl::StrFormat("<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" fill=\"%s\"/>", Px(x),
                         Px(y), Px(width), Px(height), color);
}

std::string Text(double x, double y, const char* anchor, const std::string& text) {
  return absl::StrFormat("<text x=\"%s\" y=\"%s\" text-anchor=\"%s\">%s</text>\n", Px(x), Px(y),
                         anchor,
                         absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}}));
}

// 1, 2 or 5 times a power of ten, and at least `least`.
double RoundNumber(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double times : {1, 2, 5}) {
    if (times * power >= least) return times * power;
  }
  return 10 * power;
}

// Draws the picture from top to bottom.
class Picture {
 public:
  explicit Picture(const PipelineTimeline& timeline)
      : timeline_(timeline),
        pixels_(LabelWidth(timeline.shape) / LabelTime(timeline).count()),
        width_(std::max(kNarrowest, kLeft + timeline.step.count() * pixels_ + kRight)) {}

  std::string Draw(const std::string& title) {
    for (std::size_t rank = 0; rank < timeline_.ranks.size(); ++rank) DrawRank(rank);
    const double bottom = kTop + kRow * static_cast<double>(timeline_.ranks.size());
    DrawAxis(bottom);
    DrawLegend(bottom + 48);
    const std::string size = absl::StrCat(Px(width_), " ", Px(bottom + 64));
    return absl::StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", size,
                        "\" width=\"", Px(width_), "\" height=\"", Px(bottom + 64),
                        "\" font-family=\"sans-serif\" font-size=\"11\" ", "fill=\"#222222\">\n",
                        Box(0, 0, width_, bottom + 64, "#ffffff"), "\n<g font-size=\"14\">\n",
                        Text(kLeft, 24, "start", title), "</g>\n", body_, "</svg>\n");
  }

 private:
  static double LabelWidth(const PipelineShape& shape) {
    return 10 + kDigit * static_cast<double>(absl::StrCat(shape.micro_batches - 1).size());
  }
  double At(Milliseconds time) const { return kLeft + time.count() * pixels_; }

  void DrawRank(std::size_t rank) {
    const double top = kTop + kRow * static_cast<double>(rank);
    absl::StrAppend(&body_, Text(kLeft - 10, top + 15, "end", absl::StrCat("rank ", rank)),
                    // The uncovered part is the bubble.
                    Box(kLeft, top, timeline_.step.count() * pixels_, kBox, "#f1f1f1"), "\n");
    for (const TimedAction& timed : timeline_.ranks[rank].actions) DrawAction(timed, rank, top);
  }

  void DrawAction(const TimedAction& timed, std::size_t rank, double top) {
    const PipelineAction& action = timed.action;
    kinds_.insert(action.kind);
    // Half a pixel on each side keeps boxes apart.
    const double width = std::max(0.5, (timed.end - timed.start).count() * pixels_ - 1);
    absl::StrAppend(&body_, "<g><title>rank ", rank, ": ", PhraseOf(action, timeline_.shape),
                    absl::StrFormat(", %.4g to %.4g ms", timed.start.count(), timed.end.count()),
                    "</title>",
                    Box(At(timed.start) + 0.5, top, width, kBox,
                        ColorOf(action.kind, action.chunk, timeline_.shape.chunks)));
    const std::string number = absl::StrCat(action.micro_batch);
    if (width >= kDigit * static_cast<double>(number.size())) {
      absl::StrAppend(&body_,
                      Text((At(timed.start) + At(timed.end)) / 2, top + 15, "middle", number));
    }
    absl::StrAppend(&body_, "</g>\n");
  }

  void DrawAxis(double top) {
    const double apart = RoundNumber(60 / pixels_);
    for (int tick = 0; tick * apart <= timeline_.step.count() * (1 + 1e-9); ++tick) {
      const Milliseconds time(tick * apart);
      absl::StrAppend(&body_, Box(At(time), top, 1, 5, "#888888"), "\n",
                      Text(At(time), top + 18, "middle", absl::StrFormat("%.4g ms", time.count())));
    }
  }

  void DrawLegend(double top) {
    const int chunks = timeline_.shape.chunks;
    const double swatch = std::clamp(84.0 / chunks, 1.0, 14.0);
    double x = kLeft;
    const auto say = [&](const std::string& text) {
      x += 6;
      absl::StrAppend(&body_, Text(x, top, "start", text));
      x += 6.2 * static_cast<double>(text.size()) + 16;
    };
    for (const ActionKind kind : kinds_) {
      for (int chunk = 0; chunk < chunks; ++chunk, x += swatch) {
        absl::StrAppend(&body_, Box(x, top - 10, swatch, 12, ColorOf(kind, chunk, chunks)), "\n");
      }
      say(LookOf(kind).name);
    }
    absl::StrAppend(&body_, Box(x, top - 10, 14, 12, "#f1f1f1"), "\n");
    x += 14;
    say("idle");
    if (chunks > 1) say(absl::StrCat("light to dark: chunk 0 to ", chunks - 1));
  }

  const PipelineTimeline& timeline_;
  const double pixels_;  // per millisecond
  const double width_;
  std::set<ActionKind> kinds_;
  std::string body_;
};

}  // namespace

std::string TimelineSvg(const PipelineTimeline& timeline, const std::string& title) {
  return Picture(timeline).Draw(title);
}

namespace {

constexpr int kMostDrawings = 12;
constexpr int kLetters = 26;
// The penalty for cutting a label, where cutting an action costs 1: more than any number of ranks.
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

// The whole step on lines of unlimited length.
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
  // The columns [begin, end) of a rank, without trailing blanks.
  std::string Cut(std::size_t rank, std::size_t begin, std::size_t end) const {
    return std::string(absl::StripTrailingAsciiWhitespace(
        absl::string_view(lines_[rank]).substr(begin, end - begin)));
  }
  // Where to cut a drawing that begins at `begin` and has room for `room` columns: where the fewest
  // labels, and then the fewest actions, continue after the cut.
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
    // A blank at its end separates an action from the next one.
    const std::size_t drawn = std::max<std::size_t>(end - begin - 1, 1);
    const std::string label = LabelOf(timed.action, chunks).substr(0, drawn);
    line.replace(begin, drawn, label + std::string(drawn - label.size(), '-'));
    for (std::size_t inside = 1; inside < drawn; ++inside) {
      harm_[begin + inside] += inside < label.size() ? kLabelHarm : 1;
    }
  }

  const Milliseconds column_;
  const std::size_t columns_;
  std::vector<std::size_t> harm_;  // the penalty for cutting before a column
  std::vector<std::string> lines_;
};

}  // namespace

std::string TimelineText(const PipelineTimeline& timeline, int width) {
  const Canvas canvas(timeline);
  const std::size_t name_width = absl::StrCat("rank ", timeline.shape.stages - 1, "  ").size();
  const std::size_t most =
      std::max(static_cast<std::size_t>(std::max(width, 0)), 2 * name_width) - name_width;
  // Drawings of about the same width instead of a short last one. An eighth more, as cuts come
  // early.
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

Milliseconds LabelTime(const PipelineTimeline& timeline) {
  Milliseconds shortest = timeline.step;
  Milliseconds longest{0};
  for (const RankTimeline& rank : timeline.ranks) {
    for (const TimedAction& timed : rank.actions) {
      const Milliseconds length = timed.end - timed.start;
      if (length > Milliseconds(0)) shortest = std::min(shortest, length);
      longest = std::max(longest, length);
    }
  }
  return std::max(shortest, longest / 20);
}

}  // namespace muster::trainer

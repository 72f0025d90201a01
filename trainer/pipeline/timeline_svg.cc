#include "trainer/pipeline/timeline_svg.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

#include "trainer/pipeline/label_time.h"

namespace muster::trainer {
namespace {

// In pixels.
constexpr double kLeft = 66;  // of the ranks' names
constexpr double kRight = 24;
constexpr double kTop = 40;
constexpr double kRow = 26;
constexpr double kBox = 22;
constexpr double kNarrowest = 560;  // so that title and legend have room
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

// A number of pixels, to a hundredth.
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

// Makes the picture from top to bottom.
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
                    // What no box covers is the bubble.
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
  const double pixels_;  // for a millisecond
  const double width_;
  std::set<ActionKind> kinds_;
  std::string body_;
};

}  // namespace

std::string TimelineSvg(const PipelineTimeline& timeline, const std::string& title) {
  return Picture(timeline).Draw(title);
}

}  // namespace muster::trainer

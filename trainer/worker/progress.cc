#include "trainer/worker/progress.h"

#include <algorithm>

#include "absl/strings/str_format.h"

#include "base/safe_text.h"

namespace muster::trainer {
namespace {

constexpr int kBarWidth = 24;

std::string Bar(std::int64_t done, std::int64_t all) {
  const auto filled = static_cast<std::size_t>(done * kBarWidth / all);
  return std::string(filled, '#') + std::string(kBarWidth - filled, '.');
}

}  // namespace

std::string FormatSeconds(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::max(0.0, seconds) + 0.5);
  if (whole < 60) return absl::StrFormat("%d s", whole);
  if (whole < 3600) return absl::StrFormat("%d min %02d s", whole / 60, whole % 60);
  return absl::StrFormat("%d h %02d min", whole / 3600, whole / 60 % 60);
}

bool Progress::Show(const Standing& standing) {
  const std::string numbers =
      absl::StrFormat("loss %.4f, %.0f %s/s, %s left", standing.loss, standing.samples_per_second,
                      standing.unit, FormatSeconds(standing.seconds_left));
  const bool last = standing.step == standing.steps;
  if (terminal_) {
    // \x1b[K clears the rest of a longer line.
    out_ << absl::StrFormat("\repoch %d/%d [%s] %d/%d, %s\x1b[K", standing.epoch, standing.epochs,
                            Bar(standing.step, standing.steps), standing.step, standing.steps,
                            numbers);
    bar_open_ = !last;
    if (last) out_ << '\n';
    out_.flush();
    return true;
  }
  const std::int64_t tenths = standing.step * 10 / standing.steps;
  if (tenths <= shown_tenths_ && !last) return false;
  shown_tenths_ = last ? 0 : tenths;
  out_ << absl::StrFormat("epoch %d/%d: %3d %%, step %d/%d, %s\n", standing.epoch, standing.epochs,
                          standing.step * 100 / standing.steps, standing.step, standing.steps,
                          numbers);
  out_.flush();
  return true;
}

void Progress::Say(const std::string& line) {
  if (bar_open_) out_ << '\n';
  bar_open_ = false;
  out_ << Printable(line, /*lines=*/true) << '\n';
  out_.flush();
}

std::string Printable(std::string_view text, bool lines) {
  std::string shown = base::SafeText(text);
  std::replace_if(
      shown.begin(), shown.end(), [lines](char c) { return c == '\t' || (c == '\n' && !lines); },
      '?');
  return shown;
}

}  // namespace muster::trainer

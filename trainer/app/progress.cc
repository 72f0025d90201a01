#include "trainer/app/progress.h"

#include "absl/strings/str_format.h"

namespace muster::trainer {
namespace {

constexpr int kBarWidth = 24;

std::string Bar(std::int64_t done, std::int64_t all) {
  const auto filled = static_cast<std::size_t>(done * kBarWidth / all);
  return std::string(filled, '#') + std::string(kBarWidth - filled, '.');
}

}  // namespace

void Progress::Show(const Standing& standing) {
  const std::string numbers =
      absl::StrFormat("loss %.4f, %.0f images/s", standing.loss, standing.images_per_second);
  const bool last = standing.step == standing.steps;
  if (terminal_) {
    // \x1b[K clears what a longer line left behind.
    out_ << absl::StrFormat("\repoch %d/%d [%s] %d/%d, %s\x1b[K", standing.epoch, standing.epochs,
                            Bar(standing.step, standing.steps), standing.step, standing.steps,
                            numbers);
    bar_open_ = !last;
    if (last) out_ << '\n';
    out_.flush();
    return;
  }
  const std::int64_t tenths = standing.step * 10 / standing.steps;
  if (tenths <= shown_tenths_ && !last) return;
  shown_tenths_ = last ? 0 : tenths;
  out_ << absl::StrFormat("epoch %d/%d: %3d %%, step %d/%d, %s\n", standing.epoch, standing.epochs,
                          standing.step * 100 / standing.steps, standing.step, standing.steps,
                          numbers);
  out_.flush();
}

void Progress::Say(const std::string& line) {
  if (bar_open_) out_ << '\n';
  bar_open_ = false;
  out_ << line << '\n';
  out_.flush();
}

}  // namespace muster::trainer

#include "worker/output/lines.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace muster::worker {
namespace {

constexpr char kTime[] = "${time}";

}  // namespace

LinePrefix::LinePrefix(const std::string& text, pid_t pid)
    : text_(absl::StrReplaceAll(text, {{"${pid}", absl::StrCat(pid)}})),
      has_time_(absl::StrContains(text_, kTime)) {}

std::string LinePrefix::At(Time now) const {
  return has_time_ ? absl::StrReplaceAll(text_, {{kTime, ClockTime(now)}}) : text_;
}

std::string ClockTime(LinePrefix::Time time) {
  const auto since_epoch = std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since_epoch);
  const std::time_t whole = seconds.count();
  std::tm local;
  ::localtime_r(&whole, &local);
  char text[32];
  std::snprintf(text, sizeof text, "%02d:%02d:%02d.%03d", local.tm_hour, local.tm_min, local.tm_sec,
                static_cast<int>((since_epoch - seconds).count()));
  return text;
}

namespace {

// Finds line ends one after another. memchr scans many bytes at a time, and no byte is scanned
// twice: a thousand lines that end in '\r' may be followed by no '\n'.
class LineEnds {
 public:
  // The position of the first '\r' or '\n' in what is left of the bytes of the first call, or npos.
  std::size_t NextIn(std::string_view left) {
    const std::size_t end = std::min(newline_.NextIn(left), carriage_return_.NextIn(left));
    return end < left.size() ? end : std::string_view::npos;
  }

 private:
  struct Finder {
    const char wanted;
    // The next one's distance from the end of the bytes; 0: none.
    std::optional<std::size_t> from_end{};

    std::size_t NextIn(std::string_view left) {
      if (!from_end || *from_end > left.size()) {
        const std::size_t found = left.find(wanted);
        from_end = found == std::string_view::npos ? 0 : left.size() - found;
      }
      return left.size() - *from_end;
    }
  };

  Finder newline_{'\n'};
  Finder carriage_return_{'\r'};
};

}  // namespace

// The output of one call. All of its lines share the prefix.
struct LinePrefixer::Output {
  std::string prefix;
  std::string text;

  // `shown`: the prefix with which the line's beginning was shown; empty: none.
  void AddLine(std::string_view shown, std::string_view held, std::string_view rest) {
    text.append(shown.empty() ? prefix : shown).append(held).append(rest).push_back('\n');
  }
};

std::string LinePrefixer::Feed(std::string_view bytes, Time now) {
  Output out{prefix_.At(now), {}};
  out.text.reserve(bytes.size() + bytes.size() / 4);
  LineEnds ends;
  while (!bytes.empty()) {
    if (std::exchange(after_carriage_return_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const std::size_t end = ends.NextIn(bytes);
    if (end == std::string_view::npos || held_.size() + end > kMaxLine) {
      held_.append(bytes.substr(0, end));
      if (held_.size() > kMaxLine) GiveOutPiece(&out);
      if (end == std::string_view::npos) break;
      after_carriage_return_ = bytes[end] == '\r';
      EndLine({}, &out);
    } else if (bytes[end] == '\r') {
      ReturnCarriage(bytes.substr(0, end), &out);
    } else {
      EndLine(bytes.substr(0, end), &out);
    }
    bytes.remove_prefix(end + 1);
  }
  return std::move(out.text);
}

std::string LinePrefixer::Rewritten(Time now) const {
  if (!rewriting_ || pieces_ != Pieces::kNone) return "";
  return absl::StrCat(prefix_.At(now), held_.empty() ? rewritten_ : held_);
}

std::string LinePrefixer::Part(Time now) {
  if (shown_prefix_.empty()) shown_prefix_ = prefix_.At(now);
  return shown_prefix_ + held_;
}

std::string LinePrefixer::Finish(Time now) {
  Output out{prefix_.At(now), {}};
  if (!held_.empty() || !rewritten_.empty() || pieces_ != Pieces::kNone) EndLine({}, &out);
  return std::move(out.text);
}

void LinePrefixer::EndLine(std::string_view end_of_line, Output* out) {
  if (pieces_ != Pieces::kNone) {
    if (pieces_ == Pieces::kShown) out->text.append(held_).append(end_of_line).push_back('\n');
  } else {
    if (held_.empty() && end_of_line.empty()) held_.swap(rewritten_);
    if (filters_.empty()) {
      out->AddLine(shown_prefix_, held_, end_of_line);
    } else {
      held_.append(end_of_line);
      if (IsWanted(held_)) out->AddLine({}, held_, {});
    }
  }
  held_.clear();
  rewritten_.clear();
  rewriting_ = false;
  pieces_ = Pieces::kNone;
  shown_prefix_.clear();
}

void LinePrefixer::ReturnCarriage(std::string_view end_of_line, Output* out) {
  const bool empty = held_.empty() && end_of_line.empty() && pieces_ == Pieces::kNone;
  if (carriage_return_ == CarriageReturn::kEndsLine || pieces_ != Pieces::kNone) {
    after_carriage_return_ = true;
    if (!empty) EndLine(end_of_line, out);
    return;
  }
  rewriting_ = true;
  shown_prefix_.clear();
  if (empty) return;
  held_.append(end_of_line);
  rewritten_.swap(held_);
  held_.clear();
}

void LinePrefixer::GiveOutPiece(Output* out) {
  if (pieces_ == Pieces::kNone) {
    const bool wanted = filters_.empty() || IsWanted(held_);
    pieces_ = wanted ? Pieces::kShown : Pieces::kHidden;
    if (wanted) out->text.append(shown_prefix_.empty() ? out->prefix : shown_prefix_);
  }
  if (pieces_ == Pieces::kShown) out->text.append(held_);
  held_.clear();
}

bool LinePrefixer::IsWanted(std::string_view line) const {
  return std::any_of(filters_.begin(), filters_.end(), [&](const std::string& filter) {
    return line.find(filter) != std::string_view::npos;
  });
}

namespace {

// A character or escape sequence: its bytes and columns.
struct Unit {
  std::size_t size;
  std::size_t width;
};

// The next "ESC [ parameters letter" or character. Wide characters count as narrow ones: telling
// them apart needs tables, and progress bars rarely contain them.
Unit NextUnit(std::string_view text) {
  std::size_t size = 1;
  if (text.front() == '\x1b') {
    if (text.size() > 1 && text[1] == '[') ++size;
    while (size < text.size() && size > 1 && !(text[size] >= '@' && text[size] <= '~')) ++size;
    return {std::min(size + 1, text.size()), 0};
  }
  // Bytes 10xxxxxx continue a character.
  while (size < text.size() && (text[size] & 0xc0) == 0x80) ++size;
  return {size, 1};
}

}  // namespace

std::string RewrittenLine::Rewrite(const void* writer, std::string_view line, int columns) {
  std::string bytes = writer_ == nullptr ? "" : writer_ == writer ? "\r" : "\n";
  const std::size_t before = writer_ == writer ? width_ : 0;
  // Leave the last column free: a character there wraps the line on some terminals.
  const std::string fitting =
      columns > 1 ? CutToWidth(line, static_cast<std::size_t>(columns) - 1) : std::string(line);
  writer_ = writer;
  width_ = VisibleWidth(fitting);
  line_.clear();
  bytes += fitting;
  if (before > width_) bytes.append(before - width_, ' ');
  return bytes;
}

std::string RewrittenLine::Show(const void* writer, std::string_view line) {
  std::string_view rest = line;
  std::string bytes = Leave(writer, rest);
  bytes += rest;
  writer_ = writer;
  width_ = VisibleWidth(line);
  line_ = line;
  return bytes;
}

std::string RewrittenLine::Leave(const void* writer, std::string_view& text) {
  if (writer_ == nullptr) return "";
  const bool own = std::exchange(writer_, nullptr) == writer;
  if (own && !line_.empty() && text.starts_with(line_)) {
    text.remove_prefix(line_.size());
    return "";
  }
  return own ? "\r" + std::string(width_, ' ') + "\r" : "\n";
}

std::size_t VisibleWidth(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const Unit unit = NextUnit(text);
    width += unit.width;
    text.remove_prefix(unit.size);
  }
  return width;
}

std::string CutToWidth(std::string_view text, std::size_t columns) {
  std::string fitting;
  std::size_t width = 0;
  while (!text.empty()) {
    const Unit unit = NextUnit(text);
    if (width + unit.width <= columns) {
      fitting.append(text.substr(0, unit.size));
      width += unit.width;
    }
    text.remove_prefix(unit.size);
  }
  return fitting;
}

void TailBuffer::Append(std::string_view bytes) {
  const std::size_t keep = limit_ + 1;
  if (bytes.size() >= keep) {
    bytes.remove_prefix(bytes.size() - keep);
    bytes_.clear();
  }
  bytes_.append(bytes);
  if (bytes_.size() > 2 * keep) bytes_.erase(0, bytes_.size() - keep);
}

std::string TailBuffer::Text() const {
  return TailOf(bytes_, limit_);
}

std::string TailOf(std::string_view bytes, std::size_t limit) {
  if (bytes.size() <= limit) return std::string(bytes);
  const bool at_line_start = bytes[bytes.size() - limit - 1] == '\n';
  bytes.remove_prefix(bytes.size() - limit);
  if (!at_line_start) {
    const std::size_t newline = bytes.find('\n');
    // A newline as the very last byte starts no line.
    if (newline != std::string_view::npos && newline + 1 < bytes.size()) {
      bytes.remove_prefix(newline + 1);
    }
  }
  return std::string(bytes);
}

}  // namespace muster::worker

#include "worker/output/line_prefixer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster::worker {
namespace {

// Finds the ends of lines, one after the other. By memchr, which looks at many bytes at a time, and
// at none of them twice: a thousand lines that end in '\r' may have no '\n' behind them.
class LineEnds {
 public:
  // The first '\r' or '\n', or npos, in what is left of the bytes that it was first called with.
  std::size_t NextIn(std::string_view left) {
    const std::size_t end = std::min(newline_.NextIn(left), carriage_return_.NextIn(left));
    return end < left.size() ? end : std::string_view::npos;
  }

 private:
  struct Finder {
    const char wanted;
    // Where the next one is, counted from the end of the bytes; 0: there is none.
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

// What one call gives out. The prefix is made once for all of its lines.
struct LinePrefixer::Output {
  std::string prefix;
  std::string text;

  void AddLine(std::string_view held, std::string_view rest) {
    text.append(prefix).append(held).append(rest).push_back('\n');
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
      out->AddLine(held_, end_of_line);
    } else {
      held_.append(end_of_line);
      if (IsWanted(held_)) out->AddLine(held_, {});
    }
  }
  held_.clear();
  rewritten_.clear();
  rewriting_ = false;
  pieces_ = Pieces::kNone;
}

void LinePrefixer::ReturnCarriage(std::string_view end_of_line, Output* out) {
  const bool empty = held_.empty() && end_of_line.empty() && pieces_ == Pieces::kNone;
  if (carriage_return_ == CarriageReturn::kEndsLine || pieces_ != Pieces::kNone) {
    after_carriage_return_ = true;
    if (!empty) EndLine(end_of_line, out);
    return;
  }
  rewriting_ = true;
  if (empty) return;
  held_.append(end_of_line);
  rewritten_.swap(held_);
  held_.clear();
}

void LinePrefixer::GiveOutPiece(Output* out) {
  if (pieces_ == Pieces::kNone) {
    const bool wanted = filters_.empty() || IsWanted(held_);
    pieces_ = wanted ? Pieces::kShown : Pieces::kHidden;
    if (wanted) out->text.append(out->prefix);
  }
  if (pieces_ == Pieces::kShown) out->text.append(held_);
  held_.clear();
}

bool LinePrefixer::IsWanted(std::string_view line) const {
  return std::any_of(filters_.begin(), filters_.end(), [&](const std::string& filter) {
    return line.find(filter) != std::string_view::npos;
  });
}

}  // namespace muster::worker

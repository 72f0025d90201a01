#include "worker/line_prefixer.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace muster::worker {

std::string LinePrefixer::Feed(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    if (after_carriage_return_ && bytes.front() == '\n') {
      after_carriage_return_ = false;
      bytes.remove_prefix(1);
      continue;
    }
    after_carriage_return_ = false;
    const std::size_t end = bytes.find_first_of("\r\n");
    held_.append(bytes.substr(0, end));
    if (held_.size() > kMaxLine) {
      absl::StrAppend(&out, in_pieces_ ? "" : prefix_, held_);
      held_.clear();
      in_pieces_ = true;
    }
    if (end == std::string_view::npos) break;
    EndLine(bytes[end], &out);
    bytes.remove_prefix(end + 1);
  }
  return out;
}

std::string LinePrefixer::Finish() {
  std::string out;
  if (!held_.empty() || in_pieces_) EndLine('\n', &out);
  return out;
}

void LinePrefixer::EndLine(char terminator, std::string* out) {
  after_carriage_return_ = terminator == '\r';
  const bool empty = held_.empty() && !in_pieces_;
  if (!(empty && terminator == '\r')) {
    absl::StrAppend(out, in_pieces_ ? "" : prefix_, held_, "\n");
  }
  held_.clear();
  in_pieces_ = false;
}

}  // namespace muster::worker

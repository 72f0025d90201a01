#include "launcher/commands/watch_view.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/json.h"
#include "base/text_table.h"
#include "launcher/commands/job_text.h"
#include "launcher/commands/job_view.h"
#include "rendezvous/core/milestone.h"
#include "rendezvous/pages/job_json.h"

namespace muster::launcher {
namespace {

std::string EndedTable(const std::vector<rendezvous::JobEnd>& ended) {
  std::vector<std::vector<std::string>> rows = {{"ENDED", "HOW", "MESSAGE"}};
  for (const rendezvous::JobEnd& end : ended) {
    rows.push_back({end.run_id, Name(end.kind), end.sentence});
  }
  return base::TextTable(std::move(rows));
}

// Its first `columns` characters.
absl::string_view Cut(absl::string_view line, int columns) {
  int seen = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(line[i]) & 0xC0) != 0x80;
    if (begins && ++seen > columns) return line.substr(0, i);
  }
  return line;
}

}  // namespace

std::string WatchText(const rendezvous::WatchedJobs& watched, bool of_one_job,
                      absl::TimeZone zone) {
  if (watched.jobs.empty() && watched.ended.empty()) return "no jobs\n";
  std::string text;
  if (!watched.jobs.empty()) {
    text = of_one_job ? JobText(watched.jobs.front(), zone) : JobTable(watched.jobs);
  }
  if (!watched.ended.empty()) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", EndedTable(watched.ended));
  }
  return text;
}

std::string WatchJson(const rendezvous::WatchedJobs& watched) {
  base::Json ended = base::Json::array();
  for (const rendezvous::JobEnd& end : watched.ended) {
    ended.push_back(
        {{"run_id", end.run_id}, {"outcome", Name(end.kind)}, {"message", end.sentence}});
  }
  return absl::StrCat(
      base::JsonText({{"jobs", rendezvous::ToJson(watched.jobs)}, {"ended", std::move(ended)}}),
      "\n");
}

std::string Redrawing::Draw(const std::string& text, const Size& size) {
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  // Lines of another width may stand in several rows by now: then all that is seen is cleared.
  std::string bytes = columns_ != 0 && columns_ != size.columns ? "\x1b[H\x1b[2J"
                      : drawn_ > 0 ? absl::StrCat("\r\x1b[", drawn_, "A\x1b[J")
                                   : "\r";
  const std::size_t room = static_cast<std::size_t>(std::max(size.rows - 1, 1));
  const std::size_t shown = lines.size() <= room ? lines.size() : room - 1;
  for (std::size_t i = 0; i < shown; ++i) {
    absl::StrAppend(&bytes, Cut(lines[i], size.columns), "\n");
  }
  if (shown < lines.size()) {
    const std::string more = absl::StrCat("... and ", lines.size() - shown, " more lines");
    absl::StrAppend(&bytes, Cut(more, size.columns), "\n");
  }
  drawn_ = static_cast<int>(std::min(lines.size(), room));
  columns_ = size.columns;
  return bytes;
}

}  // namespace muster::launcher

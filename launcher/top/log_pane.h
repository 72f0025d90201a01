// What a rank prints, in rows of a screen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/terminal/screen.h"
#include "launcher/top/rank_log.h"

namespace muster::launcher {

// A row of it that stays the same when more is printed: of a line, counted from the first that ever
// was, the piece.
struct LogPlace {
  std::int64_t line = 0;
  int piece = 0;

  bool operator==(const LogPlace&) const = default;
};

struct LogPane {
  std::vector<ScreenLine> rows;
  // Which part that is, and how to see more.
  std::string note;
};

// As many rows as there are room for, from `top` on; nullopt: the last ones. Lines that are too
// long are broken. What is of stderr begins with "2> ", and what Muster says with "-- ".
LogPane DrawLog(const RankLog& log, const std::optional<LogPlace>& top, const ScreenSize& room);

// The place `by` rows further down, or up; nullopt: where the last rows are.
std::optional<LogPlace> Scrolled(const RankLog& log, const std::optional<LogPlace>& top,
                                 const ScreenSize& room, int by);

}  // namespace muster::launcher

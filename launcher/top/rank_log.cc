#include "launcher/top/rank_log.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "rendezvous/wire/printable.h"

namespace muster::launcher {
namespace {

using rendezvous::LogNotice;
using rendezvous::LogRound;
using rendezvous::LogStream;
using rendezvous::LogText;
using Source = LogLine::Source;

constexpr int kTabColumns = 8;

// How long the sequence for a terminal is that begins there, if it is one that colours text or
// clears a line; else 0.
std::size_t ColourSize(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const std::size_t end = text.find_first_not_of("0123456789;:", 2);
  const bool is_colour = end != std::string_view::npos && (text[end] == 'm' || text[end] == 'K');
  return is_colour ? end + 1 : 0;
}

// U+202A to U+202E and U+2066 to U+2069: after them a terminal may write from right to left.
bool TurnsDirection(std::string_view text) {
  const std::string_view character = text.substr(0, 3);
  return (character >= "\xe2\x80\xaa" && character <= "\xe2\x80\xae") ||
         (character >= "\xe2\x81\xa6" && character <= "\xe2\x81\xa9");
}

void AddLine(RankLog& log, Source source, std::string text) {
  log.lines.push_back({source, std::move(text)});
  if (log.lines.size() <= RankLog::kMostLines) return;
  log.lines.pop_front();
  ++log.gone;
}

Source SourceOf(std::size_t stream) {
  return stream == 0 ? Source::kStdout : Source::kStderr;
}

// What fits into one line; the rest of a character that does not is left.
std::string TakePiece(std::string& bytes) {
  std::size_t end = bytes.size();
  while (end > 1 && (static_cast<unsigned char>(bytes[end - 1]) & 0xC0) == 0x80) --end;
  const bool cuts = static_cast<unsigned char>(bytes[end - 1]) >= 0xC0;
  std::string rest = cuts && end > 1 ? bytes.substr(end - 1) : "";
  bytes.resize(bytes.size() - rest.size());
  return std::exchange(bytes, std::move(rest));
}

void Take(RankLog& log, const LogText& text) {
  const std::size_t stream = text.stream == LogStream::kStdout ? 0 : 1;
  RankLog::Begun& begun = log.begun[stream];
  for (const char byte : text.bytes) {
    if (byte == '\n') {
      AddLine(log, SourceOf(stream), ShowableLine(begun.bytes));
      begun = {};
      continue;
    }
    if (byte == '\r') {
      begun.has_returned = true;
      continue;
    }
    if (std::exchange(begun.has_returned, false)) begun.bytes.clear();
    begun.bytes += byte;
    if (begun.bytes.size() < RankLog::kMostLineBytes) continue;
    AddLine(log, SourceOf(stream), ShowableLine(TakePiece(begun.bytes)));
  }
}

// Lines that the worker has not ended, and will not.
void EndLines(RankLog& log) {
  for (std::size_t i = 0; i < log.begun.size(); ++i) {
    const RankLog::Begun begun = std::exchange(log.begun[i], {});
    if (!begun.bytes.empty()) AddLine(log, SourceOf(i), ShowableLine(begun.bytes));
  }
}

void Take(RankLog& log, const LogNotice& notice) {
  AddLine(log, Source::kMuster, ShowableLine(notice.sentence));
}

void Take(RankLog& log, const LogRound& round) {
  EndLines(log);
  AddLine(log, Source::kMuster,
          absl::StrCat("round ", round.round,
                       round.reason.empty() ? "" : " begins: ", ShowableLine(round.reason)));
}

}  // namespace

rendezvous::LogRequest RequestFor(const RankLog& log) {
  return {
      .run_id = log.run_id,
      .ranks = {{log.rank, log.rank}},
      .previous = log.of_round_before,
      .extent = {.tail = static_cast<int>(RankLog::kMostLines), .follow = !log.of_round_before}};
}

void OnLogPart(RankLog& log, const rendezvous::LogPart& part) {
  std::visit([&log](const auto& kind) { Take(log, kind); }, part);
}

void OnLogOutage(RankLog& log, const std::string& why) {
  AddLine(log, Source::kMuster, absl::StrCat(ShowableLine(why), "; it goes on here"));
}

void OnLogEnd(RankLog& log, const absl::Status& status) {
  EndLines(log);
  log.end = status.ok()                   ? RankLog::End::kAllTold
            : absl::IsUnavailable(status) ? RankLog::End::kCutOff
                                          : RankLog::End::kFailed;
  const std::string rank = absl::StrCat("rank ", log.rank);
  AddLine(log, Source::kMuster,
          !status.ok() ? ShowableLine(std::string(status.message()))
          : log.of_round_before
              ? absl::StrCat("this is all that ", rank, " printed in the round before")
              : absl::StrCat("the job has ended; ", rank, " prints nothing more"));
}

std::vector<LogLine> LinesOf(const RankLog& log) {
  std::vector<LogLine> lines(log.lines.begin(), log.lines.end());
  for (std::size_t i = 0; i < log.begun.size(); ++i) {
    if (log.begun[i].bytes.empty()) continue;
    lines.push_back({SourceOf(i), ShowableLine(log.begun[i].bytes)});
  }
  return lines;
}

std::string ShowableLine(const std::string& bytes) {
  std::string named;
  int columns = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::string_view rest = std::string_view(bytes).substr(i);
    const auto byte = static_cast<unsigned char>(bytes[i]);
    if (const std::size_t size = ColourSize(rest); size > 0) {
      i += size - 1;
    } else if (byte == '\t') {
      const int blanks = kTabColumns - columns % kTabColumns;
      named.append(static_cast<std::size_t>(blanks), ' ');
      columns += blanks;
    } else if (byte < 0x20 || byte == 0x7f) {
      named += {'^', static_cast<char>(byte ^ 0x40)};
      columns += 2;
    } else if (TurnsDirection(rest)) {
      named += '?';
      ++columns;
      i += 2;
    } else {
      named += bytes[i];
      columns += (byte & 0xC0) == 0x80 ? 0 : 1;
    }
  }
  return rendezvous::Printable(named, named.size());
}

}  // namespace muster::launcher

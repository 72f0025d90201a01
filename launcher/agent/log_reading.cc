#include "launcher/agent/log_reading.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/phrases.h"
#include "rendezvous/core/limits.h"

namespace muster::launcher {
namespace {

using rendezvous::LogNotice;
using rendezvous::LogStream;
using worker::StreamLog;

const char* NameOfStream(LogStream stream) {
  return stream == LogStream::kStdout ? "stdout" : "stderr";
}

std::string RankList(const std::vector<int>& ranks) {
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(absl::StrCat(rank));
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ", base::ShortList(names));
}

}  // namespace

LogReading::LogReading(const rendezvous::LogWanted& wanted, const std::vector<KeptLogs::Rank>* kept,
                       std::string host, StreamLog::Time now)
    : extent_(wanted.extent), round_(wanted.round.number), host_(std::move(host)) {
  if (kept == nullptr) {
    notices_.push_back(
        {.sentence = absl::StrCat("host ", host_, " keeps nothing of round ", round_, " any more"),
         .is_loss = true});
    return;
  }
  for (const KeptLogs::Rank& rank : *kept) {
    const bool is_wanted = std::any_of(wanted.ranks.begin(), wanted.ranks.end(),
                                       [&rank](const rendezvous::RankRange& range) {
                                         return range.first <= rank.rank && rank.rank <= range.last;
                                       });
    if (!is_wanted) continue;
    if (extent_.with_stdout) Add(rank.rank, LogStream::kStdout, rank.out, now);
    if (extent_.with_stderr) Add(rank.rank, LogStream::kStderr, rank.err, now);
  }
  ExplainWhatIsNotKept();
}

void LogReading::Add(int rank, LogStream stream, std::shared_ptr<StreamLog> log,
                     StreamLog::Time now) {
  if (log->way() != StreamLog::Way::kHere) {
    const bool to_console = log->way() == StreamLog::Way::kConsole;
    bypassed_[stream == LogStream::kStderr][to_console].push_back(rank);
    return;
  }
  Source source{.rank = rank, .stream = stream, .log = std::move(log)};
  source.offset = source.log->begin();
  const std::optional<std::uint64_t> position = PositionOf(rank, stream);
  const bool is_part = extent_.since || extent_.tail;
  if (position) {
    source.offset = std::min(*position, source.log->end());
  } else {
    if (extent_.since) source.offset = source.log->FindTime(now - *extent_.since);
    if (extent_.tail) source.offset = std::max(source.offset, source.log->FindTail(*extent_.tail));
  }
  if (!extent_.follow) source.stop = source.log->end();
  // If he loses his daemon before there is anything, he is to go on from here all the same.
  source.is_announced = !(extent_.follow && is_part && !position);
  // He who asks for all would take it for all.
  if (!is_part && !position && source.offset > 0) {
    notices_.push_back(
        {.sentence = absl::StrCat("of ", NameOfStream(stream), " of rank ", rank, " on host ",
                                  host_, " the last ", source.log->end() - source.offset, " of ",
                                  source.log->end(),
                                  " bytes are kept; --tee=3 or --redirects=3 of "
                                  "`muster run` keep all in files")});
  }
  sources_.push_back(std::move(source));
}

std::optional<std::uint64_t> LogReading::PositionOf(int rank, LogStream stream) const {
  for (const rendezvous::LogPosition& position : extent_.from) {
    if (position.rank == rank && position.stream == stream) return position.offset;
  }
  return std::nullopt;
}

void LogReading::ExplainWhatIsNotKept() {
  for (const LogStream stream : {LogStream::kStdout, LogStream::kStderr}) {
    const auto& ways = bypassed_[stream == LogStream::kStderr];
    if (const std::vector<int>& ranks = ways[1]; !ranks.empty()) {
      notices_.push_back({.sentence = absl::StrCat(
                              NameOfStream(stream), " of ", RankList(ranks), " on host ", host_,
                              " goes straight to where `muster run` prints and is not kept; "
                              "--tee=3 or --redirects=3 of `muster run` keep it in files")});
    }
    if (const std::vector<int>& ranks = ways[0]; !ranks.empty()) {
      notices_.push_back(
          {.sentence = absl::StrCat(NameOfStream(stream), " of ", RankList(ranks), " on host ",
                                    host_, " goes nowhere, as --local-ranks-filter says")});
    }
  }
}

bool LogReading::HasMore(const Source& source) const {
  return !source.failed && source.offset < source.stop.value_or(source.log->end());
}

bool LogReading::IsDone(const Source& source) const {
  return source.failed || (!HasMore(source) && (source.stop || source.log->ended()));
}

LogReading::Next LogReading::Take() {
  if (!notices_.empty()) {
    LogNotice notice = std::move(notices_.front());
    notices_.pop_front();
    return notice;
  }
  for (Source& source : sources_) {
    if (std::exchange(source.is_announced, true)) continue;
    return rendezvous::LogText{
        .rank = source.rank, .stream = source.stream, .bytes = "", .offset = source.offset};
  }
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const std::size_t at = (turn_ + i) % sources_.size();
    if (!HasMore(sources_[at])) continue;
    // One that is not followed is told to its end first.
    turn_ = extent_.follow ? at + 1 : at;
    return Read(sources_[at]);
  }
  const bool all_done = std::all_of(sources_.begin(), sources_.end(),
                                    [this](const Source& source) { return IsDone(source); });
  if (all_done) return All{};
  return NothingYet{};
}

rendezvous::LogPart LogReading::Read(Source& source) {
  if (const std::uint64_t begin = source.log->begin(); source.offset < begin) {
    const std::uint64_t lost = begin - std::exchange(source.offset, begin);
    return LogNotice{.sentence = absl::StrCat(lost, " bytes of ", NameOfStream(source.stream),
                                              " of rank ", source.rank,
                                              " were gone before they were read, as they are not "
                                              "in a file (--tee, --redirects)"),
                     .is_loss = true};
  }
  const std::uint64_t left = source.stop.value_or(source.log->end()) - source.offset;
  auto bytes = source.log->Read(source.offset, static_cast<std::size_t>(std::min<std::uint64_t>(
                                                   left, rendezvous::limits::kLogChunkBytes.most)));
  if (!bytes.ok()) {
    source.failed = true;
    return LogNotice{.sentence = absl::StrCat("host ", host_, ": ", bytes.status().message()),
                     .is_loss = true};
  }
  const std::uint64_t offset = source.offset;
  source.offset += bytes->size();
  return rendezvous::LogText{
      .rank = source.rank, .stream = source.stream, .bytes = *std::move(bytes), .offset = offset};
}

void LogReading::WatchNews(const std::function<void()>& call) {
  for (Source& source : sources_) source.watch = source.log->WatchNews(call);
}

}  // namespace muster::launcher

#include "launcher/run/log_deliveries.h"

#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>

#include "absl/strings/str_cat.h"

#include "base/text.h"
#include "rendezvous/core/values/limits.h"

namespace muster::launcher {

void KeptLogs::BeginRound(rendezvous::RoundId round, std::vector<worker::WorkerSpec>& specs) {
  Round& begun = rounds_.emplace_back(Round{.id = round, .ranks = {}});
  for (worker::WorkerSpec& spec : specs) {
    spec.stdout_spec.log = std::make_shared<worker::StreamLog>(spec.stdout_spec.file);
    spec.stderr_spec.log = std::make_shared<worker::StreamLog>(spec.stderr_spec.file);
    begun.ranks.push_back(
        {.rank = spec.rank, .out = spec.stdout_spec.log, .err = spec.stderr_spec.log});
  }
  if (rounds_.size() > kRounds) rounds_.pop_front();
  if (rounds_.size() <= kInMemory) return;
  for (const Rank& rank : rounds_[rounds_.size() - kInMemory - 1].ranks) {
    rank.out->Forget();
    rank.err->Forget();
  }
}

void KeptLogs::EndRound() {
  if (rounds_.empty()) return;
  for (const Rank& rank : rounds_.back().ranks) {
    rank.out->End();
    rank.err->End();
  }
}

const std::vector<KeptLogs::Rank>* KeptLogs::Find(rendezvous::RoundId round) const {
  for (const Round& kept : rounds_) {
    if (kept.id == round) return &kept.ranks;
  }
  return nullptr;
}

bool KeptLogs::IsToCome(rendezvous::RoundId round) const {
  return std::none_of(rounds_.begin(), rounds_.end(), [&round](const Round& kept) {
    return kept.id.incarnation == round.incarnation && kept.id.number >= round.number;
  });
}

// One reader.
class LogDeliveries::Delivery {
 public:
  Delivery(boost::asio::io_context& io, LogReading reading, std::uint64_t wanted,
           rendezvous::RendezvousClient& client, std::function<void()> on_over)
      : io_(io), reading_(std::move(reading)) {
    reading_.WatchNews([this] { HearNews(); });
    delivery_ = client.DeliverLog(
        wanted, {.on_ready = [this] { SendNext(); }, .on_over = std::move(on_over)});
  }

 private:
  void SendNext() {
    LogReading::Next next = reading_.Take();
    if (auto* const part = std::get_if<rendezvous::LogPart>(&next)) {
      return delivery_->Send(std::move(*part));
    }
    if (std::holds_alternative<LogReading::All>(next)) return delivery_->Finish();
    waits_ = true;
  }

  // In the middle of a worker's output: what follows has its own turn.
  void HearNews() {
    if (!std::exchange(waits_, false)) return;
    boost::asio::post(io_, lifetime_.Guard([this] { SendNext(); }));
  }

  boost::asio::io_context& io_;
  LogReading reading_;
  std::unique_ptr<rendezvous::LogDelivery> delivery_;
  bool waits_ = false;  // for something to send
  const base::Lifetime lifetime_;
};

LogDeliveries::LogDeliveries(boost::asio::io_context& io, std::string host)
    : io_(io), host_(std::move(host)), limit_(io) {}

LogDeliveries::~LogDeliveries() = default;

void LogDeliveries::Begin(const rendezvous::LogWanted& wanted, const KeptLogs& kept,
                          rendezvous::RendezvousClient& client) {
  if (kept.IsToCome(wanted.round)) return early_.push_back(wanted);
  const std::uint64_t id = next_++;
  deliveries_[id] = std::make_unique<Delivery>(
      io_, LogReading(wanted, kept.Find(wanted.round), host_, std::chrono::steady_clock::now()),
      wanted.delivery, client, [this, id] { End(id); });
}

void LogDeliveries::OnRoundBegun(const KeptLogs& kept, rendezvous::RendezvousClient& client) {
  for (const rendezvous::LogWanted& wanted : std::exchange(early_, {})) {
    Begin(wanted, kept, client);
  }
}

void LogDeliveries::End(std::uint64_t id) {
  deliveries_.erase(id);
  if (deliveries_.empty() && done_) TellDone();
}

void LogDeliveries::WhenDone(std::chrono::milliseconds limit, std::function<void()> done) {
  done_ = std::move(done);
  if (deliveries_.empty()) return TellDone();
  limit_.expires_after(limit);
  limit_.async_wait(lifetime_.Guard([this](const boost::system::error_code& error) {
    if (error || !done_) return;
    deliveries_.clear();
    TellDone();
  }));
}

void LogDeliveries::TellDone() {
  limit_.cancel();
  boost::asio::post(io_, std::exchange(done_, nullptr));
}

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
  // A reader that loses its daemon before there is any output must still go on from here.
  source.is_announced = !(extent_.follow && is_part && !position);
  // A reader that asked for everything would take this for everything.
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
                                    host_, " is discarded by --local-ranks-filter")});
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
    return LogNotice{
        .sentence = absl::StrCat(
            lost, " bytes of ", NameOfStream(source.stream), " of rank ", source.rank,
            " were dropped before they were read, as they are not in a file (--tee, --redirects)"),
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

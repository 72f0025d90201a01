#include "rendezvous/wire/worker_wire.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "rendezvous/core/values/limits.h"
#include "rendezvous/core/values/phrases.h"
#include "rendezvous/wire/parts.h"

namespace muster::rendezvous {
namespace {

// One more than allowed, so that an excess is noticed.
constexpr int kMostRanges = static_cast<int>(limits::kLogRankRanges.most) + 1;
constexpr int kMostPositions = static_cast<int>(limits::kLogPositions.most) + 1;

LogStream StreamFromWire(bool is_stderr) {
  return is_stderr ? LogStream::kStderr : LogStream::kStdout;
}

void ToWire(const LogExtent& extent, v1::LogExtent* wire) {
  wire->set_without_stdout(!extent.with_stdout);
  wire->set_without_stderr(!extent.with_stderr);
  if (extent.since) wire->set_since_ms(ToMs(*extent.since));
  if (extent.tail) wire->set_tail(*extent.tail);
  wire->set_follow(extent.follow);
  for (const LogPosition& position : extent.from) {
    v1::LogPosition* const out = wire->add_from();
    out->set_rank(position.rank);
    out->set_is_stderr(position.stream == LogStream::kStderr);
    out->set_offset(position.offset);
  }
}

LogExtent FromWire(const v1::LogExtent& wire) {
  LogExtent extent{.with_stdout = !wire.without_stdout(),
                   .with_stderr = !wire.without_stderr(),
                   .follow = wire.follow()};
  if (wire.has_since_ms()) extent.since = FromMs(wire.since_ms());
  if (wire.has_tail()) extent.tail = wire.tail();
  for (int i = 0; i < std::min(wire.from_size(), kMostPositions); ++i) {
    const v1::LogPosition& position = wire.from(i);
    extent.from.push_back(
        {position.rank(), StreamFromWire(position.is_stderr()), position.offset()});
  }
  return extent;
}

template <typename Wire>
void RangesToWire(const std::vector<RankRange>& ranks, Wire* wire) {
  for (const RankRange& range : ranks) {
    v1::RankRange* const out = wire->add_ranks();
    out->set_first(range.first);
    out->set_last(range.last);
  }
}

template <typename Wire>
std::vector<RankRange> RangesFromWire(const Wire& wire) {
  std::vector<RankRange> ranks;
  for (int i = 0; i < std::min(wire.ranks_size(), kMostRanges); ++i) {
    ranks.push_back({wire.ranks(i).first(), wire.ranks(i).last()});
  }
  return ranks;
}

LogText TextFromWire(v1::LogText* wire) {
  LogText text{.rank = wire->rank(),
               .stream = StreamFromWire(wire->is_stderr()),
               .bytes = std::move(*wire->mutable_data())};
  if (wire->has_offset()) text.offset = wire->offset();
  text.bytes.resize(std::min<std::size_t>(text.bytes.size(), limits::kLogChunkBytes.most));
  return text;
}

LogNotice NoticeFromWire(const v1::LogNotice& wire) {
  return {.sentence = Line(wire.sentence()), .is_loss = wire.is_loss()};
}

void ToWire(const LogText& text, v1::LogText* wire) {
  wire->set_rank(text.rank);
  wire->set_is_stderr(text.stream == LogStream::kStderr);
  wire->set_data(text.bytes);
  if (text.offset) wire->set_offset(*text.offset);
}

void ToWire(const LogNotice& notice, v1::LogNotice* wire) {
  wire->set_sentence(Line(notice.sentence));
  wire->set_is_loss(notice.is_loss);
}

// The longest name a worker may give (worker/hang/hang_watch.h).
constexpr std::size_t kMaxPhaseName = 15;
constexpr std::size_t kMostPhasesOfRank = 8;
// The path of a log file and the reason it is not written fit.
constexpr std::size_t kMaxRankAlert = 200;

constexpr std::pair<RankAlertKind, v1::RankAlert::Kind> kRankAlertKindTable[] = {
    {RankAlertKind::kStopped, v1::RankAlert::STOPPED},
    {RankAlertKind::kSilent, v1::RankAlert::SILENT},
    {RankAlertKind::kOutputLost, v1::RankAlert::OUTPUT_LOST}};
static_assert(std::size(kRankAlertKindTable) == kRankAlertKinds - 1 &&
              std::size(kRankAlertKindTable) == v1::RankAlert::Kind_ARRAYSIZE - 1);

// The index of `phase` in the message's list; adds it if missing; -1: the list is full.
int IndexOf(const PhaseTime& phase, v1::Progress* wire) {
  for (int i = 0; i < wire->phases_size(); ++i) {
    if (wire->phases(i).name() == phase.name && wire->phases(i).waits() == phase.waits) return i;
  }
  if (wire->phases_size() == kMostPhases) return -1;
  v1::Phase* const added = wire->add_phases();
  added->set_name(OneLine(phase.name, kMaxPhaseName));
  added->set_waits(phase.waits);
  return wire->phases_size() - 1;
}

v1::RankProgress* AddRank(const RankProgress& rank, v1::Progress* wire) {
  v1::RankProgress* const out = wire->add_ranks();
  out->set_local_rank(rank.local_rank);
  if (rank.step) out->set_step(*rank.step);
  out->set_ago_ms(ToMs(rank.ago));
  if (rank.loss) out->set_loss(*rank.loss);
  if (rank.samples_per_second) out->set_samples_per_second(*rank.samples_per_second);
  if (rank.step_seconds) out->set_step_seconds(*rank.step_seconds);
  out->set_timed_steps(rank.timed_steps);
  for (const PhaseTime& phase : rank.phases) {
    const int at = IndexOf(phase, wire);
    if (at < 0) continue;
    while (out->phase_seconds_size() <= at) out->add_phase_seconds(-1);
    out->set_phase_seconds(at, phase.seconds);
  }
  return out;
}

// A plausible time; up to 11 days.
bool IsTime(double seconds) {
  return seconds >= 0 && seconds <= 1e6;
}

RankProgress ReadRank(const v1::RankProgress& in, const std::vector<PhaseTime>& names) {
  RankProgress rank{.local_rank = in.local_rank(),
                    .ago = FromMs(std::max<std::int64_t>(in.ago_ms(), 0)),
                    .timed_steps = in.timed_steps()};
  if (in.has_step()) rank.step = in.step();
  if (in.has_loss()) rank.loss = in.loss();
  if (in.has_samples_per_second() && in.samples_per_second() >= 0 &&
      std::isfinite(in.samples_per_second())) {
    rank.samples_per_second = in.samples_per_second();
  }
  if (in.has_step_seconds() && IsTime(in.step_seconds())) rank.step_seconds = in.step_seconds();
  const std::size_t told = std::min<std::size_t>(in.phase_seconds_size(), names.size());
  for (std::size_t i = 0; i < told && rank.phases.size() < kMostPhasesOfRank; ++i) {
    const double seconds = in.phase_seconds(static_cast<int>(i));
    if (!IsTime(seconds) || names[i].name.empty()) continue;
    rank.phases.push_back({names[i].name, seconds, names[i].waits});
  }
  return rank;
}

std::vector<PhaseTime> ReadNames(const v1::Progress& wire) {
  std::vector<PhaseTime> names;
  for (const v1::Phase& phase : wire.phases()) {
    if (static_cast<int>(names.size()) == kMostPhases) break;
    names.push_back({.name = OneLine(phase.name(), kMaxPhaseName), .waits = phase.waits()});
  }
  return names;
}

v1::RankAlert* AddRankAlert(const RankAlert& alert, v1::Progress* wire) {
  v1::RankAlert* const out = wire->mutable_alerts()->add_alerts();
  out->set_local_rank(alert.local_rank);
  out->set_kind(OnWire(kRankAlertKindTable, alert.kind));
  out->set_what(OneLine(alert.what, kMaxRankAlert));
  out->set_ago_ms(ToMs(alert.ago));
  return out;
}

RankAlert ReadRankAlert(const v1::RankAlert& in) {
  return {.local_rank = in.local_rank(),
          .kind = rendezvous::FromWire(kRankAlertKindTable, in.kind(), RankAlertKind::kOther),
          .what = OneLine(in.what(), kMaxRankAlert),
          .ago = FromMs(std::max<std::int64_t>(in.ago_ms(), 0))};
}

}  // namespace

void ToWire(const LogRequest& request, v1::LogRequest* wire) {
  wire->set_run_id(request.run_id);
  RangesToWire(request.ranks, wire);
  if (request.round) wire->set_round(*request.round);
  wire->set_previous(request.previous);
  ToWire(request.extent, wire->mutable_extent());
  wire->set_incarnation(request.incarnation);
}

void ToWire(const LogWanted& wanted, v1::LogWanted* wire) {
  wire->set_delivery(wanted.delivery);
  wire->set_round(wanted.round.number);
  wire->set_incarnation(wanted.round.incarnation);
  RangesToWire(wanted.ranks, wire);
  ToWire(wanted.extent, wire->mutable_extent());
}

void ToWire(const LogPart& part, v1::LogPart* wire) {
  if (const auto* text = std::get_if<LogText>(&part)) ToWire(*text, wire->mutable_text());
  if (const auto* notice = std::get_if<LogNotice>(&part)) ToWire(*notice, wire->mutable_notice());
  if (const auto* round = std::get_if<LogRound>(&part)) {
    wire->mutable_round()->set_round(round->round);
    wire->mutable_round()->set_reason(Line(round->reason));
    wire->mutable_round()->set_incarnation(round->incarnation);
  }
}

void ToWire(const LogPart& part, v1::LogDelivery* wire) {
  if (const auto* text = std::get_if<LogText>(&part)) ToWire(*text, wire->mutable_text());
  if (const auto* notice = std::get_if<LogNotice>(&part)) ToWire(*notice, wire->mutable_notice());
}

LogRequest FromWire(const v1::LogRequest& wire) {
  LogRequest request{.run_id = wire.run_id(),
                     .ranks = RangesFromWire(wire),
                     .previous = wire.previous(),
                     .extent = FromWire(wire.extent()),
                     .incarnation = wire.incarnation()};
  if (wire.has_round()) request.round = wire.round();
  return request;
}

LogWanted FromWire(const v1::LogWanted& wire) {
  return {.delivery = wire.delivery(),
          .round = {wire.incarnation(), wire.round()},
          .ranks = RangesFromWire(wire),
          .extent = FromWire(wire.extent())};
}

LogPart FromWire(v1::LogPart&& wire) {
  switch (wire.part_case()) {
    case v1::LogPart::kText:
      return TextFromWire(wire.mutable_text());
    case v1::LogPart::kNotice:
      return NoticeFromWire(wire.notice());
    case v1::LogPart::kRound:
      return LogRound{wire.round().round(), Line(wire.round().reason()),
                      wire.round().incarnation()};
    case v1::LogPart::PART_NOT_SET:
      break;
  }
  return LogNotice{.sentence = "received a message that this version of Muster does not know"};
}

LogPart FromWire(v1::LogDelivery&& wire) {
  switch (wire.part_case()) {
    case v1::LogDelivery::kText:
      return TextFromWire(wire.mutable_text());
    case v1::LogDelivery::kNotice:
      return NoticeFromWire(wire.notice());
    default:
      return LogNotice{.sentence = "an agent sent a message that this daemon does not know"};
  }
}

void ToWire(const Progress& progress, v1::Progress* wire) {
  wire->set_round(progress.round.number);
  wire->set_incarnation(progress.round.incarnation);
  for (const RankProgress& rank : progress.ranks) AddRank(rank, wire);
  if (!progress.alerts) return;
  // An empty list is sent, too: all problems are over.
  wire->mutable_alerts();
  for (const RankAlert& alert : *progress.alerts) AddRankAlert(alert, wire);
}

void ToWire(const std::vector<RankAlertSnapshot>& alerts, v1::Progress* wire) {
  for (const RankAlertSnapshot& alert : alerts) {
    AddRankAlert(alert.told, wire)->set_rank(alert.rank);
  }
}

void ToWire(const std::vector<RankSnapshot>& ranks, v1::Progress* wire) {
  for (const RankSnapshot& rank : ranks) {
    v1::RankProgress* const out = AddRank(rank.told, wire);
    out->set_rank(rank.rank);
    if (!rank.straggling) continue;
    out->mutable_straggling()->set_slower(rank.straggling->slower);
    out->mutable_straggling()->set_phase(OneLine(rank.straggling->phase, kMaxPhaseName));
    out->mutable_straggling()->set_age_ms(ToMs(rank.straggling->age));
  }
}

Progress FromWire(const v1::Progress& wire) {
  Progress progress{.round = {wire.incarnation(), wire.round()}};
  const std::vector<PhaseTime> names = ReadNames(wire);
  for (const v1::RankProgress& rank : wire.ranks()) progress.ranks.push_back(ReadRank(rank, names));
  if (!wire.has_alerts()) return progress;
  progress.alerts.emplace();
  for (const v1::RankAlert& alert : wire.alerts().alerts()) {
    progress.alerts->push_back(ReadRankAlert(alert));
  }
  return progress;
}

std::vector<RankAlertSnapshot> RankAlertsFromWire(const v1::Progress& wire) {
  std::vector<RankAlertSnapshot> alerts;
  for (const v1::RankAlert& alert : wire.alerts().alerts()) {
    alerts.push_back({alert.rank(), ReadRankAlert(alert)});
  }
  return alerts;
}

std::vector<RankSnapshot> RanksFromWire(const v1::Progress& wire) {
  std::vector<RankSnapshot> ranks;
  const std::vector<PhaseTime> names = ReadNames(wire);
  for (const v1::RankProgress& in : wire.ranks()) {
    RankSnapshot& rank = ranks.emplace_back(RankSnapshot{in.rank(), ReadRank(in, names), {}});
    if (!in.has_straggling()) continue;
    const double slower = in.straggling().slower();
    rank.straggling = {slower >= 0 && slower <= 1e6 ? slower : 0,
                       OneLine(in.straggling().phase(), kMaxPhaseName),
                       FromMs(in.straggling().age_ms())};
  }
  return ranks;
}

}  // namespace muster::rendezvous

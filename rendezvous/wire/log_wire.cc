#include "rendezvous/wire/log_wire.h"

#include <algorithm>
#include <utility>

#include "rendezvous/core/limits.h"
#include "rendezvous/wire/parts.h"

namespace muster::rendezvous {
namespace {

// One more than may be asked for, so that it is seen that there are too many.
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
  return LogNotice{.sentence = "something came that this version of Muster does not know"};
}

LogPart FromWire(v1::LogDelivery&& wire) {
  switch (wire.part_case()) {
    case v1::LogDelivery::kText:
      return TextFromWire(wire.mutable_text());
    case v1::LogDelivery::kNotice:
      return NoticeFromWire(wire.notice());
    default:
      return LogNotice{.sentence = "an agent said something that this daemon does not know"};
  }
}

}  // namespace muster::rendezvous

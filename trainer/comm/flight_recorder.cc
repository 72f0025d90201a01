#include "trainer/comm/flight_recorder.h"

#include <utility>

#include "trainer/comm/flight_report.h"

namespace muster::trainer {

FlightRecorder::FlightRecorder(ShmSegment segment, const HostLayout& layout)
    : segment_(std::move(segment)),
      ranks_(layout.local_ranks),
      mine_(LogOf(static_cast<std::size_t>(layout.local_index))) {}

FlightLog FlightRecorder::LogOf(std::size_t place) const {
  return FlightLog(segment_.data() + place * FlightLog::Bytes());
}

std::string_view FlightRecorder::NameOf(const void* data) const {
  const auto name = names_.find(data);
  return name == names_.end() ? std::string_view() : name->second;
}

void FlightRecorder::Leave(std::uint64_t ticket) {
  mine_.Leave(ticket, FlightNow());
}

std::string FlightRecorder::Explain() const {
  std::vector<RankFlight> flights;
  for (std::size_t place = 0; place < ranks_.size(); ++place) {
    flights.push_back({.rank = ranks_[place], .records = LogOf(place).Read()});
  }
  return ExplainFlights(flights, FlightNow());
}

std::uint64_t GroupFlights::Begin(FlightPart part, Operation operation, std::string_view tensor,
                                  std::size_t bytes) {
  return recorder_->Enter({.group = group_,
                           .part = part,
                           .operation = operation,
                           .number = ++numbers_[static_cast<std::size_t>(part)],
                           .tensor = tensor,
                           .bytes = bytes,
                           .now_ns = FlightNow()});
}

std::uint64_t GroupFlights::Enter(FlightPart part, Operation operation, const void* data,
                                  std::size_t bytes) {
  return recorded() ? Begin(part, operation, recorder_->NameOf(data), bytes) : 0;
}

std::uint64_t GroupFlights::EnterPair(Operation operation, std::string_view other,
                                      std::size_t bytes) {
  return recorded() ? Begin(FlightPart::kPair, operation, other, bytes) : 0;
}

void GroupFlights::Leave(std::uint64_t ticket) {
  if (recorded()) recorder_->Leave(ticket);
}

}  // namespace muster::trainer

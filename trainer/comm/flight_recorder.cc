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

std::uint64_t FlightRecorder::Enter(FlightGroup group, Operation operation, const void* data,
                                    std::size_t bytes) {
  const auto name = names_.find(data);
  return mine_.Enter(group, operation, name == names_.end() ? "" : name->second, bytes,
                     FlightNow());
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

}  // namespace muster::trainer

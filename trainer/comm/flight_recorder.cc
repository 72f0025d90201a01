#include "trainer/comm/flight_recorder.h"

#include <utility>

#include "worker/flight/flight_report.h"

namespace muster::trainer {

FlightRecorder::FlightRecorder(std::optional<ShmSegment> segment, const HostLayout& layout,
                               int rank, std::optional<worker::FlightMemory> launchers)
    : segment_(std::move(segment)),
      launchers_memory_(std::move(launchers)),
      rank_(rank),
      ranks_(layout.local_ranks) {
  if (segment_) ours_.emplace(LogOf(static_cast<std::size_t>(layout.local_index)));
  if (launchers_memory_) launchers_.emplace(launchers_memory_->data());
}

worker::FlightLog FlightRecorder::LogOf(std::size_t place) const {
  return worker::FlightLog(segment_->data() + place * worker::kFlightLogBytes);
}

std::string_view FlightRecorder::NameOf(const void* data) const {
  const auto name = names_.find(data);
  return name == names_.end() ? std::string_view() : name->second;
}

FlightTicket FlightRecorder::Enter(const worker::FlightEntry& entry) {
  return {.ours = ours_ ? ours_->Enter(entry) : 0,
          .launchers = launchers_ ? launchers_->Enter(entry) : 0};
}

void FlightRecorder::Leave(const FlightTicket& ticket) {
  const std::int64_t now_ns = worker::FlightNow();
  if (ours_) ours_->Leave(ticket.ours, now_ns);
  if (launchers_) launchers_->Leave(ticket.launchers, now_ns);
}

std::string FlightRecorder::Explain() {
  watch_.AskAll();
  std::vector<worker::RankFlight> flights;
  if (!segment_) flights.push_back({.rank = rank_, .records = launchers_->Read()});
  for (std::size_t place = 0; segment_ && place < ranks_.size(); ++place) {
    flights.push_back({.rank = ranks_[place], .records = LogOf(place).Read()});
  }
  return worker::ExplainFlights(flights, worker::FlightNow());
}

FlightTicket GroupFlights::Begin(FlightPart part, Operation operation, std::string_view tensor,
                                 std::size_t bytes) {
  return recorder_->Enter({.group = group_,
                           .part = part,
                           .operation = OperationName(operation),
                           .number = ++numbers_[static_cast<std::size_t>(part)],
                           .tensor = tensor,
                           .bytes = bytes,
                           .now_ns = worker::FlightNow()});
}

FlightTicket GroupFlights::Enter(FlightPart part, Operation operation, const void* data,
                                 std::size_t bytes) {
  return recorded() ? Begin(part, operation, recorder_->NameOf(data), bytes) : FlightTicket();
}

FlightTicket GroupFlights::EnterPair(Operation operation, std::string_view other,
                                     std::size_t bytes) {
  return recorded() ? Begin(FlightPart::kPair, operation, other, bytes) : FlightTicket();
}

void GroupFlights::Leave(const FlightTicket& ticket) {
  if (recorded()) recorder_->Leave(ticket);
}

void GroupFlights::Watch(const FlightTicket& ticket, std::function<FlightState()> ask) {
  if (recorded()) recorder_->Watch(ticket, std::move(ask));
}

}  // namespace muster::trainer

#include "rendezvous/fronts/log_exchange.h"

#include <chrono>
#include <utility>

namespace muster::rendezvous {
namespace {

TimePoint LogTime() {
  return std::chrono::steady_clock::now();
}

}  // namespace

LogReaderId LogExchange::OpenReader(LogRequest request, Reader reader) {
  const LogReaderId id = next_reader_++;
  readers_.emplace(id, std::move(reader));
  core_.logs().Open(id, std::move(request), LogTime());
  follow_();
  return id;
}

void LogExchange::Took(LogReaderId reader) {
  core_.logs().Ready(reader, LogTime());
  follow_();
}

void LogExchange::CloseReader(LogReaderId reader) {
  readers_.erase(reader);
  core_.logs().Close(reader);
  follow_();
}

bool LogExchange::OpenDelivery(LogDeliveryId delivery, Source source) {
  if (!core_.logs().OpenDelivery(delivery)) return false;
  sources_.emplace(delivery, std::move(source));
  follow_();
  return true;
}

void LogExchange::Brought(LogDeliveryId delivery, LogPart part) {
  core_.logs().Brought(delivery, std::move(part), LogTime());
  follow_();
}

void LogExchange::Ended(LogDeliveryId delivery, const absl::Status& status) {
  sources_.erase(delivery);
  core_.logs().Ended(delivery, status, LogTime());
  follow_();
}

// Each takes a copy, as whoever is called may end itself.
void LogExchange::Do(GiveLogPart&& give) {
  const auto reader = readers_.find(give.reader);
  if (reader == readers_.end()) return;
  const auto on_part = reader->second.on_part;
  on_part(std::move(give.part));
}

void LogExchange::Do(EndLogReader&& end) {
  auto reader = readers_.extract(end.reader);
  if (!reader.empty()) reader.mapped().on_end(end.status);
}

void LogExchange::Do(ReadLogDelivery&& read) {
  const auto source = sources_.find(read.delivery);
  if (source == sources_.end()) return;
  const auto call = source->second.read;
  call();
}

void LogExchange::Do(EndLogDelivery&& end) {
  auto source = sources_.extract(end.delivery);
  if (!source.empty()) source.mapped().end();
}

}  // namespace muster::rendezvous

#include "trainer/comm/host/operation_log.h"

#include <chrono>
#include <csignal>
#include <exception>
#include <iterator>
#include <utility>

#include "worker/flight_report.h"

namespace muster::trainer {

const char* OperationName(Operation operation) {
  switch (operation) {
    case Operation::kAllReduce:
      return "all-reduce";
    case Operation::kAllGather:
      return "all-gather";
    case Operation::kBroadcast:
      return "broadcast";
    case Operation::kReduceScatter:
      return "reduce-scatter";
    case Operation::kSend:
      return "send";
    case Operation::kReceive:
      return "receive";
  }
  return "operation";
}

Traffic Traffic::Since(const Traffic& earlier) const {
  Traffic since = *this;
  since.formula_bytes -= earlier.formula_bytes;
  if (counted_bytes) since.counted_bytes = *counted_bytes - earlier.counted_bytes.value_or(0);
  return since;
}

std::int64_t CentralBytes(int replicas, std::int64_t bytes) {
  return 2 * (replicas - 1) * bytes;
}

std::int64_t RingBytes(int ranks, std::int64_t bytes) {
  return 2 * (ranks - 1) * bytes / ranks;
}

std::int64_t GatherBytes(int ranks, std::int64_t bytes) {
  return (ranks - 1) * bytes;
}

std::int64_t FormulaParts(Operation operation, int ranks, std::int64_t bytes) {
  switch (operation) {
    case Operation::kAllReduce:
      return 2 * (ranks - 1) * bytes;
    case Operation::kReduceScatter:
    case Operation::kBroadcast:
      return (ranks - 1) * bytes;
    case Operation::kAllGather:
      return GatherBytes(ranks, bytes) * ranks;
    case Operation::kSend:
      return bytes * ranks;
    case Operation::kReceive:
      return 0;
  }
  return 0;
}

void TrafficCount::Add(Use use, Operation operation, std::int64_t bytes,
                       std::optional<std::int64_t> counted) {
  Sums& sums = sums_[static_cast<std::size_t>(use)];
  sums.parts += FormulaParts(operation, ranks_, bytes);
  ++sums.operations;
  if (counted) {
    sums.counted += *counted;
  } else {
    ++sums.uncounted;
  }
}

Traffic TrafficCount::Total(Use use, bool counts) const {
  const Sums& sums = sums_[static_cast<std::size_t>(use)];
  Traffic total = {.formula_bytes = sums.parts / ranks_};
  if (sums.uncounted == 0 && (counts || sums.operations > 0)) total.counted_bytes = sums.counted;
  return total;
}

namespace {

constexpr std::chrono::milliseconds kAskEvery(50);
constexpr std::chrono::seconds kAskedByAnother(1);

}  // namespace

FlightWatch::~FlightWatch() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void FlightWatch::Add(std::function<FlightState()> ask, std::function<void()> on_done) {
  const std::lock_guard lock(mutex_);
  added_.push_back({std::move(ask), std::move(on_done)});
  if (++under_way_ > 1) return;
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  changed_.notify_one();
}

void FlightWatch::AskAll() {
  const std::unique_lock asking(asking_, kAskedByAnother);
  if (!asking.owns_lock()) return;
  {
    const std::lock_guard lock(mutex_);
    watched_.insert(watched_.end(), std::make_move_iterator(added_.begin()),
                    std::make_move_iterator(added_.end()));
    added_.clear();
  }
  const std::size_t over = std::erase_if(watched_, [](const Watched& one) {
    FlightState progress = FlightState::kFailed;
    try {
      progress = one.ask();
    } catch (const std::exception&) {
      // The waiter gets the error.
    }
    if (progress == FlightState::kDone) one.on_done();
    return progress != FlightState::kUnderWay;
  });
  const std::lock_guard lock(mutex_);
  under_way_ -= over;
}

void FlightWatch::Run() {
  // Signals are handled by the rank's other threads.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || under_way_ > 0; });
    if (changed_.wait_for(lock, kAskEvery, [this] { return ending_; })) return;
    lock.unlock();
    AskAll();
    lock.lock();
  }
}

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

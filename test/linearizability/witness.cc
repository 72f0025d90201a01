#include "test/linearizability/witness.h"

#include <chrono>
#include <condition_variable>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "test/linearizability/calls.h"
#include "test/linearizability/chance.h"
#include "test/linearizability/store_model.h"
#include "test/linearizability/traffic.h"

namespace muster::linearizability {
namespace {

using std::chrono::milliseconds;

constexpr int kWitnesses = 4;
constexpr milliseconds kPatience(400);
constexpr std::chrono::seconds kUntilOneServes(30);

// Until it is told to stop, or the time is over.
void Pause(const std::stop_token& stop, milliseconds time) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any().wait_for(lock, stop, time, [] { return false; });
}

}  // namespace

Witness::Witness(StorePlace place, std::uint64_t seed) : place_(std::move(place)), seed_(seed) {
  for (int i = 0; i < kWitnesses; ++i) {
    clients_.emplace_back([this, i](const std::stop_token& stop) { Call(stop, i); });
  }
}

void Witness::Call(const std::stop_token& stop, int number) {
  StoreClient client(number, place_);
  Traffic traffic(seed_, number);
  Chance chance(seed_ * 1000 + 500 + static_cast<std::uint64_t>(number));
  while (!stop.stop_requested()) {
    if (!client.Connect(kPatience)) continue;
    const auto operation = client.Do(traffic.Next(), kPatience);
    if (operation.ok()) traffic.Saw(*operation);
    Take(operation);
    Pause(stop, milliseconds(chance.Between(0, 150)));
  }
}

void Witness::Take(const absl::StatusOr<StoreOperation>& operation) {
  const std::lock_guard lock(mutex_);
  if (operation.ok()) {
    history_.push_back(*operation);
  } else {
    refusals_.insert(std::string(operation.status().message()));
  }
}

std::size_t Witness::calls() {
  const std::lock_guard lock(mutex_);
  return history_.size();
}

Witness::Finding Witness::End() {
  clients_.clear();
  StoreClient reader(kWitnesses, place_);
  const auto end = std::chrono::steady_clock::now() + kUntilOneServes;
  for (const std::string& key : kKeys) {
    // A read that was not answered tells nothing, and may be made again.
    bool answered = false;
    while (!answered && std::chrono::steady_clock::now() < end) {
      if (!reader.Connect(kPatience)) continue;
      const auto operation = reader.Do(Get(key), kPatience);
      Take(operation);
      answered = operation.ok() && operation->span.known();
    }
    if (!answered) return {history_.size(), 0, "no daemon answers any more"};
  }
  for (const std::string& key : kKeys) {
    if (reader.Connect(kPatience)) (void)reader.Do(Delete(key), kPatience);
  }

  Finding finding{.calls = history_.size()};
  for (const StoreOperation& operation : history_) {
    if (operation.call.writes() && !operation.span.known()) ++finding.unknown;
  }
  const StoreVerdict verdict = CheckStore(history_);
  if (verdict.answer != Answer::kLinearizable) {
    finding.trouble =
        absl::StrCat(verdict.answer == Answer::kGaveUp ? "the search was given up; "
                                                       : "what was seen cannot be explained; ",
                     absl::StrReplaceAll(verdict.explanation, {{"\n", " | "}}));
  } else if (!refusals_.empty()) {
    finding.trouble = absl::StrCat("calls were refused: ", absl::StrJoin(refusals_, "; "));
  }
  return finding;
}

}  // namespace muster::linearizability

#include "rendezvous/fronts/journal_writer.h"

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>

#include "rendezvous/wire/record_wire.h"

namespace muster::rendezvous {
namespace {

constexpr std::chrono::seconds kTryAgainAfter(1);

}  // namespace

JournalWriter::JournalWriter(boost::asio::io_context& io, Coordinator& coordinator,
                             Journal& journal)
    : coordinator_(coordinator), journal_(journal), retry_(io) {}

void JournalWriter::JobForgotten(const std::string& run_id) {
  changed_.forgotten.insert(run_id);
  changed_.jobs.erase(run_id);
  changed_.keys.erase(run_id);
}

void JournalWriter::StoreChanged(const std::string& run_id, std::vector<std::string> keys) {
  std::set<std::string>& changed = changed_.keys[run_id];
  for (std::string& key : keys) changed.insert(std::move(key));
}

void JournalWriter::Commit(std::function<void(const absl::Status&)> done) {
  done_ = std::move(done);
  journal_.Commit(TakeBatch(std::chrono::steady_clock::now()),
                  [this, alive = std::weak_ptr<void>(alive_)](const absl::Status& status) {
                    if (!alive.expired()) OnCommitted(status);
                  });
}

JournalBatch JournalWriter::TakeBatch(TimePoint now) {
  writing_ = std::exchange(changed_, {});
  JournalBatch batch;
  for (const std::string& run_id : writing_.forgotten) batch.jobs.push_back({run_id, std::nullopt});
  for (const std::string& run_id : writing_.jobs) {
    const std::optional<JobRecord> record = coordinator_.Record(run_id, now);
    if (record) batch.jobs.push_back({run_id, ToBytes(*record)});
  }
  for (const auto& [run_id, keys] : writing_.keys) {
    const KeyValueStore* const store = coordinator_.FindStore(run_id);
    if (store == nullptr) continue;
    for (const std::string& key : keys) {
      const std::string* const value = store->Get(key);
      batch.entries.push_back(
          {run_id, key, value == nullptr ? std::nullopt : std::optional(*value)});
    }
  }
  return batch;
}

void JournalWriter::OnCommitted(const absl::Status& status) {
  if (!absl::IsResourceExhausted(status)) {
    if (std::exchange(full_, false)) spdlog::warn("the journal takes what is written again");
    std::exchange(done_, nullptr)(status);
    return;
  }
  if (!std::exchange(full_, true)) {
    spdlog::error("{}; writes to stores are refused and new rounds wait until there is space",
                  std::string(status.message()));
  }
  // What was forgotten and has changed since is written after being forgotten, as before.
  for (const std::string& run_id : writing_.jobs) {
    if (!changed_.forgotten.contains(run_id)) changed_.jobs.insert(run_id);
  }
  for (const auto& [run_id, keys] : writing_.keys) {
    if (!changed_.forgotten.contains(run_id))
      changed_.keys[run_id].insert(keys.begin(), keys.end());
  }
  changed_.forgotten.insert(writing_.forgotten.begin(), writing_.forgotten.end());
  retry_.expires_after(kTryAgainAfter);
  retry_.async_wait([this, alive = std::weak_ptr<void>(alive_)](auto error) {
    if (!error && !alive.expired()) Commit(std::move(done_));
  });
}

}  // namespace muster::rendezvous

// What several leaders have written and been told, one after the other; and whether that can be the
// history of one journal.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rendezvous/journal/journal.h"

namespace muster::rendezvous {

// What is checked: a batch that was acknowledged is in what every later leader reads; one that was
// not is there whole or not at all; nothing else is there; and no leader that has been succeeded is
// acknowledged anything that its successor has not read.
class History {
 public:
  struct State {
    std::map<std::string, std::string> jobs;
    std::map<std::pair<std::string, std::string>, std::string> entries;
    bool operator==(const State&) const = default;
  };

  static void Apply(const JournalBatch& batch, State& state) {
    for (const JournalBatch::Job& job : batch.jobs) {
      if (job.record) {
        state.jobs[job.run_id] = *job.record;
        continue;
      }
      state.jobs.erase(job.run_id);
      std::erase_if(state.entries,
                    [&](const auto& entry) { return entry.first.first == job.run_id; });
    }
    for (const JournalBatch::Entry& entry : batch.entries) {
      if (entry.value) {
        state.entries[{entry.run_id, entry.key}] = *entry.value;
      } else {
        state.entries.erase({entry.run_id, entry.key});
      }
    }
  }

  // A leader has read this, and goes on from there.
  void TookOver(std::uint64_t leader, std::uint64_t incarnation, const State& read) {
    ++take_overs;
    if (incarnation <= incarnation_) {
      Fail(absl::StrCat("incarnation ", incarnation, " follows ", incarnation_));
    }
    incarnation_ = incarnation;
    State with = acknowledged_;
    if (writing_) Apply(*writing_, with);
    // A batch that changes nothing may be either.
    if (writing_ && read == with) {
      kept_.insert(leader_);
      ++kept_batches;
    } else if (read == acknowledged_) {
      if (writing_) ++lost_batches;
    } else {
      Fail(absl::StrCat("leader ", leader, " reads what was never there: ", read.jobs.size(),
                        " jobs and ", read.entries.size(), " entries; acknowledged are ",
                        acknowledged_.jobs.size(), " and ", acknowledged_.entries.size(),
                        writing_ ? ", and one batch is under way" : ""));
    }
    leader_ = leader;
    acknowledged_ = read;
    writing_.reset();
  }

  void Writes(std::uint64_t leader, const JournalBatch& batch) {
    // Who was followed writes into the void.
    if (leader == leader_) writing_ = batch;
  }

  void Acknowledged(std::uint64_t leader, const State& after) {
    ++acknowledgements;
    if (leader == leader_) {
      acknowledged_ = after;
      writing_.reset();
    } else if (!kept_.contains(leader)) {
      Fail(absl::StrCat("leader ", leader, " was followed, and commits what nobody has read"));
    }
  }

  // Counts what has happened in another one, too.
  void Add(const History& other) {
    take_overs += other.take_overs;
    acknowledgements += other.acknowledgements;
    kept_batches += other.kept_batches;
    lost_batches += other.lost_batches;
    large_batches += other.large_batches;
    followed += other.followed;
    full += other.full;
    words += other.words;
  }

  void Fail(std::string sentence) {
    if (failure.empty()) failure = std::move(sentence);
  }

  std::string failure;
  std::uint64_t take_overs = 0;
  std::uint64_t acknowledgements = 0;
  std::uint64_t kept_batches = 0;
  std::uint64_t lost_batches = 0;
  std::uint64_t followed = 0;  // take-overs from memory
  std::uint64_t full = 0;
  std::uint64_t words = 0;
  std::uint64_t large_batches = 0;

 private:
  State acknowledged_;
  std::optional<JournalBatch> writing_;
  std::uint64_t leader_ = 0;
  std::set<std::uint64_t> kept_;  // leaders whose last batch was read by the next one
  std::uint64_t incarnation_ = 0;
};

}  // namespace muster::rendezvous

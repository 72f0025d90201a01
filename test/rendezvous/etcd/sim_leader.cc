#include "test/rendezvous/etcd/sim_leader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "rendezvous/etcd/etcd_journal.h"
#include "rendezvous/etcd/journal_keys.h"
#include "rendezvous/etcd/journal_source.h"
#include "test/rendezvous/simulation/sim_alarm.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kRoot[] = "/muster";
constexpr char kLeader[] = "/muster/leader";
// More than one transaction takes.
constexpr int kLargeBatch = 150;
constexpr std::size_t kLargeValue = 600'000;
// As in led_daemon.cc.
constexpr Duration kCatchUpPatience = milliseconds(500);

}  // namespace

SimLeader::SimLeader(Scheduler& scheduler, Random& random, SimEtcd& etcd, History& history,
                     int index, Mutations mutations)
    : scheduler_(scheduler),
      random_(random),
      etcd_(etcd),
      history_(history),
      index_(index),
      mutations_(mutations),
      clock_(scheduler) {
  clock_.StartAt(seconds(random.Below(1'000'000)));
  clock_.RunFaster(random.Below(20'000) - 10'000);
}

void SimLeader::Start() {
  if (process_ != nullptr) return;
  ++life_;
  process_ = std::make_shared<Process>(scheduler_, random_);
  client_ = std::make_unique<SimEtcdClient>(scheduler_, random_, etcd_, way_, process_,
                                            mutations_.client);
  mirror_.emplace(
      *client_, std::make_unique<SimAlarm>(process_, clock_), kRoot,
      [process = std::weak_ptr(process_)](std::function<void()> call) {
        if (const auto alive = process.lock()) alive->After(Duration::zero(), std::move(call));
      },
      etcd::JournalMirror::Handlers{.follows = [](std::size_t) {},
                                    .trouble =
                                        [this](const absl::Status& why) {
                                          history_.Fail(
                                              absl::StrCat("nothing is followed any more: ",
                                                           std::string(why.message())));
                                        }});
  candidate_.emplace(
      std::make_unique<SimAlarm>(process_, clock_), *client_,
      etcd::Election::Options{.key = kLeader, .name = absl::StrCat("d", index_)},
      etcd::Candidate::Handlers{
          .won = [this](const etcd::Fence& fence, etcd::LeaseId lease) { Lead(fence, lease); },
          .follows = [this](const std::string&) { mirror_->Follow(); },
          .lost = [this](const std::string&) { EndSoon(); },
          .trouble = [](const std::string&) {}});
}

void SimLeader::Kill() {
  if (process_ == nullptr) return;
  process_->Kill();
  process_.reset();
  journal_.reset();
  source_.reset();
  pages_.reset();
  mirror_.reset();
  candidate_.reset();
  client_.reset();
}

void SimLeader::EndSoon() {
  scheduler_.After(Duration::zero(), [this, life = life_] {
    if (life != life_) return;
    Kill();
    scheduler_.After(milliseconds(50), [this, life] {
      if (life == life_) Start();
    });
  });
  process_->Stop();
}

void SimLeader::Terminate() {
  if (process_ == nullptr || process_->stopped()) return;
  candidate_->Resign([] {});
  // What is on its way arrives.
  EndSoon();
}

void SimLeader::Lead(const etcd::Fence& fence, etcd::LeaseId lease) {
  lease_ = lease;
  fence_ = fence;
  process_->After(kCatchUpPatience, [this] { mirror_->StopWaiting(); });
  mirror_->TakeOver(
      fence, [this](std::unique_ptr<etcd::MemorySource> memory) { Open(std::move(memory)); });
}

void SimLeader::Open(std::unique_ptr<etcd::MemorySource> memory) {
  if (memory != nullptr) {
    ++history_.followed;
    Compare(*memory);
    source_ = std::move(memory);
  } else {
    pages_.emplace(*client_, [this] { return clock_.Now(); });
    source_ = std::make_unique<etcd::EtcdSource>(*client_, *pages_, fence_);
  }
  etcd::OpenEtcdJournal(
      *client_, fence_, kRoot, *source_, [this](absl::StatusOr<OpenedJournal> opened) {
        if (opened.ok()) return TakeOver(*std::move(opened));
        if (!absl::IsAborted(opened.status()) && !absl::IsResourceExhausted(opened.status())) {
          history_.Fail(std::string(opened.status().message()));
        }
        EndSoon();
      });
}

void SimLeader::Compare(const etcd::MemorySource& memory) {
  // A leader that has been succeeded and does not know it yet is told so by its next transaction.
  if (etcd_.HolderOf(kLeader) != lease_) return;
  if (memory.keys() != etcd_.Values(etcd::JournalKeys(kRoot).Everything())) {
    history_.Fail(absl::StrCat("daemon ", index_, " has in memory what is not in etcd"));
  }
}

void SimLeader::TakeOver(OpenedJournal opened) {
  if (!candidate_->Leads()) return EndSoon();
  state_ = {};
  for (const auto& [run_id, record] : opened.contents.jobs) state_.jobs[run_id] = record;
  for (const JournalBatch::Entry& entry : opened.contents.entries) {
    state_.entries[{entry.run_id, entry.key}] = *entry.value;
  }
  journal_ = std::move(opened.journal);
  history_.TookOver(static_cast<std::uint64_t>(fence_.created), opened.contents.incarnation,
                    state_);
  SpeakSoon();
  WriteSoon();
}

// As when it answers a beat, which waits for no journal.
void SimLeader::SpeakSoon() {
  process_->After(milliseconds(1 + random_.Below(300)), [this] {
    if (!mutations_.speaks_when_its_lease_is_over && !candidate_->Leads()) return;
    ++history_.words;
    const etcd::LeaseId holder = etcd_.HolderOf(kLeader);
    if (holder != 0 && holder != lease_) {
      history_.Fail(absl::StrCat("daemon ", index_, " answers a beat when another one leads"));
    }
    SpeakSoon();
  });
}

void SimLeader::WriteSoon() {
  process_->After(milliseconds(random_.Below(300)), [this] { Write(); });
}

JournalBatch SimLeader::MakeBatch() {
  JournalBatch batch;
  const auto job = [this] { return absl::StrCat("j/", random_.Below(4)); };
  if (random_.Chance(1, 3)) {
    const std::string id = job();
    if (random_.Chance(1, 3)) batch.jobs.push_back({id, std::nullopt});
    if (random_.Chance(2, 3)) batch.jobs.push_back({id, absl::StrCat("r", random_.Below(1000))});
  }
  const bool is_large = random_.Chance(1, 25);
  const std::int64_t count = is_large ? kLargeBatch : 1 + random_.Below(5);
  for (std::int64_t i = 0; i < count; ++i) {
    JournalBatch::Entry entry{job(), absl::StrCat("k ", is_large ? i : random_.Below(20)), {}};
    if (random_.Chance(4, 5)) {
      const std::size_t size = random_.Chance(1, 500) ? kLargeValue : 8;
      entry.value = std::string(size, static_cast<char>('a' + random_.Below(26)));
    }
    batch.entries.push_back(std::move(entry));
  }
  if (is_large) ++history_.large_batches;
  return batch;
}

void SimLeader::Write() {
  const JournalBatch batch = MakeBatch();
  History::State after = state_;
  History::Apply(batch, after);
  history_.Writes(static_cast<std::uint64_t>(fence_.created), batch);
  Commit(batch, after);
}

// Until there is space for it, as JournalWriter does.
void SimLeader::Commit(const JournalBatch& batch, const History::State& after) {
  journal_->Commit(batch, [this, batch, after](const absl::Status& status) {
    if (absl::IsResourceExhausted(status)) {
      ++history_.full;
      return process_->After(seconds(1), [this, batch, after] { Commit(batch, after); });
    }
    if (!status.ok()) {
      if (!absl::IsAborted(status)) history_.Fail(std::string(status.message()));
      return EndSoon();
    }
    state_ = after;
    history_.Acknowledged(static_cast<std::uint64_t>(fence_.created), after);
    WriteSoon();
  });
}

}  // namespace muster::rendezvous

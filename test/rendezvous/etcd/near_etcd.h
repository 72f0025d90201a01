// An etcd without a network, for the journal of one leader and what follows it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rendezvous/etcd/etcd.h"
#include "test/rendezvous/etcd/sim_etcd.h"
#include "test/rendezvous/etcd/slow_link.h"
#include "test/rendezvous/simulation/scheduler.h"

namespace muster::rendezvous {

// Answers come in the next step of the scheduler, or after a while. Nobody is elected over it.
class NearEtcd final : public etcd::Etcd {
 public:
  NearEtcd(Scheduler& scheduler, SimEtcd& etcd)
      : scheduler_(scheduler), etcd_(etcd), link_(scheduler) {}

  void Transact(etcd::Transaction transaction,
                std::function<void(absl::StatusOr<etcd::Outcome>)> done) override {
    ++transactions;
    if (link_.is_slow()) return Try(std::move(transaction), kPatience, std::move(done));
    auto outcome = refuses.ok() ? etcd_.Apply(transaction) : refuses;
    if (answers && !answers(transaction)) {
      outcome = absl::ResourceExhaustedError("database space exceeded");
    }
    scheduler_.After(takes,
                     [done = std::move(done), outcome = std::move(outcome)] { done(outcome); });
  }
  void Read(etcd::Transaction transaction, int times,
            std::function<void(absl::StatusOr<etcd::Outcome>)> done) override {
    if (!link_.is_slow()) return Transact(std::move(transaction), std::move(done));
    ++transactions;
    Ask(transaction, times * kPatience, done);
  }
  void Attempt(etcd::Transaction, std::function<void(absl::StatusOr<etcd::Outcome>)>) override {}
  void Grant(std::chrono::milliseconds,
             std::function<void(absl::StatusOr<etcd::Granted>)>) override {}
  void KeepAlive(etcd::LeaseId,
                 std::function<void(absl::StatusOr<std::chrono::milliseconds>)>) override {}
  void TimeToLive(etcd::LeaseId,
                  std::function<void(absl::StatusOr<std::chrono::milliseconds>)>) override {}
  void Revoke(etcd::LeaseId, std::function<void(absl::Status)>) override {}
  void AwaitDeletion(const std::string&, etcd::Revision,
                     std::function<void(absl::Status)>) override {}

  void Watch(const etcd::Range& range, etcd::Revision after,
             std::function<void(std::vector<etcd::Change>)> changed,
             std::function<void(absl::Status)> ended) override {
    ++watches;
    stream_ = std::make_shared<Stream>(Stream{std::move(changed), std::move(ended)});
    etcd_.Watch(range, after,
                [this, weak = std::weak_ptr(stream_)](
                    const absl::StatusOr<std::vector<etcd::Change>>& told) {
                  const auto stream = weak.lock();
                  if (stream == nullptr) return false;
                  if (!tells) {
                    withheld_.push_back(told);
                    return true;
                  }
                  scheduler_.After({}, [weak, told] { Tell(weak, told); });
                  return told.ok();
                });
  }
  void EndWatch() override {
    stream_.reset();
    withheld_.clear();
  }
  void Compact(etcd::Revision) override {}

  // Tells what was withheld, and from now on all.
  void TellAll() {
    tells = true;
    for (const auto& told : std::exchange(withheld_, {})) Tell(stream_, told);
  }
  // The watch ends, with that.
  void EndWatchWith(const absl::Status& why) {
    withheld_.clear();
    const auto stream = std::exchange(stream_, nullptr);
    stream->ended(why);
  }
  // The connection breaks, and what was not told yet is lost.
  void Break() { EndWatchWith(absl::UnavailableError("the connection has ended")); }
  bool is_watched() const { return stream_ != nullptr; }

  // How fast answers come from now on. Whoever waits for one too long asks again.
  void HaveLink(std::size_t bytes_per_second) { link_.Have(bytes_per_second); }

  // False: it is done, the answer is lost, and the next attempt hears that there is no space.
  std::function<bool(const etcd::Transaction&)> answers;
  // What every transaction is answered with, where that is an error; nothing is done then.
  absl::Status refuses;
  // A transaction, there and back.
  Duration takes{};
  // Whether changes are told at once.
  bool tells = true;
  int watches = 0;
  int transactions = 0;

 private:
  struct Stream {
    std::function<void(std::vector<etcd::Change>)> changed;
    std::function<void(absl::Status)> ended;
  };

  // As etcd.h has it.
  static constexpr Duration kPatience = std::chrono::seconds(1);

  // Asks over the link; `done` is called with the answer, or with DeadlineExceeded.
  void Ask(const etcd::Transaction& transaction, Duration patience,
           std::function<void(absl::StatusOr<etcd::Outcome>)> done) {
    auto outcome = etcd_.Apply(transaction);
    std::size_t bytes = 100;
    if (outcome.ok()) {
      for (const auto& found : outcome->found) {
        for (const etcd::KeyValue& key : found.keys) bytes += key.key.size() + key.value.size();
      }
    }
    const std::uint64_t number =
        link_.Send(bytes, [done, outcome = std::move(outcome)] { done(outcome); });
    scheduler_.After(patience, [this, number, done] {
      if (link_.Drop(number)) done(absl::DeadlineExceededError("nobody answers in time"));
    });
  }
  void Try(const etcd::Transaction& transaction, Duration patience,
           std::function<void(absl::StatusOr<etcd::Outcome>)> done) {
    Ask(transaction, patience,
        [this, transaction, patience, done](absl::StatusOr<etcd::Outcome> outcome) {
          if (!absl::IsDeadlineExceeded(outcome.status())) return done(std::move(outcome));
          Try(transaction, std::min<Duration>(2 * patience, kMostTimes * kPatience), done);
        });
  }

  static void Tell(const std::weak_ptr<Stream>& weak,
                   const absl::StatusOr<std::vector<etcd::Change>>& told) {
    const auto stream = weak.lock();
    if (stream == nullptr) return;
    if (told.ok()) return stream->changed(*told);
    stream->ended(told.status());
  }

  Scheduler& scheduler_;
  SimEtcd& etcd_;
  SlowLink link_;
  std::shared_ptr<Stream> stream_;
  std::vector<absl::StatusOr<std::vector<etcd::Change>>> withheld_;
};

}  // namespace muster::rendezvous

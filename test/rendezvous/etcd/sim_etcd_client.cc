#include "test/rendezvous/etcd/sim_etcd_client.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// As in etcd_client.cc.
constexpr Duration kPatience = seconds(1);
constexpr Duration kPause = milliseconds(100);
// How late a request may arrive whose sender has given it up.
constexpr Duration kLatest = seconds(20);
// After which a stream on which nothing comes is given up.
constexpr Duration kSilence = seconds(3);

bool OnlyReads(const etcd::Transaction& transaction) {
  return std::all_of(transaction.then.begin(), transaction.then.end(),
                     [](const auto& each) { return std::holds_alternative<etcd::Get>(each); });
}

}  // namespace

void SimEtcdClient::Send(std::function<void()> there) {
  if (way_.cut_to || random_.Chance(way_.lost_per_1000, 1000)) return;
  Duration takes = Takes();
  if (random_.Chance(way_.late_per_1000, 1000)) {
    takes = Duration(random_.Below(kLatest.count()));
    // And in time as well, as something between the two may repeat it.
    if (random_.Chance(1, 2)) scheduler_.After(Takes(), there);
  }
  scheduler_.After(takes, std::move(there));
}

template <typename Answer>
void SimEtcdClient::Ask(std::function<absl::StatusOr<Answer>()> there,
                        std::function<void(absl::StatusOr<Answer>)> done, Duration patience) {
  // The first of answer and patience.
  const auto answered = std::make_shared<bool>(false);
  const std::weak_ptr<Process> process = process_;
  const auto once = [answered, done = std::move(done)](absl::StatusOr<Answer> answer) {
    if (!std::exchange(*answered, true)) done(std::move(answer));
  };
  Send([&scheduler = scheduler_, &random = random_, &way = way_, there = std::move(there), process,
        once] {
    absl::StatusOr<Answer> answer = there();
    if (way.cut_from || random.Chance(way.lost_per_1000, 1000)) return;
    scheduler.After(Duration(random.Below(way.longest.count() + 1)),
                    [process, once, answer = std::move(answer)] {
                      if (const auto alive = process.lock()) alive->Do([=] { once(answer); });
                    });
  });
  process_->After(patience, [once] { once(absl::UnavailableError("etcd does not answer")); });
}

void SimEtcdClient::Try(std::shared_ptr<const etcd::Transaction> transaction,
                        std::function<void(absl::StatusOr<etcd::Outcome>)> done) {
  Ask<etcd::Outcome>(
      [&etcd = etcd_, &random = random_, stale = mutations_.reads_stale, transaction] {
        if (stale && OnlyReads(*transaction) && random.Chance(1, 2)) {
          return absl::StatusOr<etcd::Outcome>(etcd.ReadStale(*transaction));
        }
        return etcd.Apply(*transaction);
      },
      [this, transaction, done](absl::StatusOr<etcd::Outcome> outcome) {
        if (!absl::IsUnavailable(outcome.status())) return done(std::move(outcome));
        process_->After(kPause, [this, transaction, done] { Try(transaction, done); });
      });
}

void SimEtcdClient::Transact(etcd::Transaction transaction,
                             std::function<void(absl::StatusOr<etcd::Outcome>)> done) {
  Try(std::make_shared<const etcd::Transaction>(std::move(transaction)), std::move(done));
}

void SimEtcdClient::Read(etcd::Transaction transaction, int times,
                         std::function<void(absl::StatusOr<etcd::Outcome>)> done) {
  Ask<etcd::Outcome>(
      [&etcd = etcd_, &random = random_, stale = mutations_.reads_stale,
       transaction = std::move(transaction)] {
        if (stale && random.Chance(1, 2)) {
          return absl::StatusOr<etcd::Outcome>(etcd.ReadStale(transaction));
        }
        return etcd.Apply(transaction);
      },
      [done = std::move(done)](absl::StatusOr<etcd::Outcome> outcome) {
        if (absl::IsUnavailable(outcome.status())) {
          outcome = absl::DeadlineExceededError(outcome.status().message());
        }
        done(std::move(outcome));
      },
      times * kPatience);
}

void SimEtcdClient::Attempt(etcd::Transaction transaction,
                            std::function<void(absl::StatusOr<etcd::Outcome>)> done) {
  Ask<etcd::Outcome>(
      [&etcd = etcd_, transaction = std::move(transaction)] { return etcd.Apply(transaction); },
      std::move(done));
}

void SimEtcdClient::Grant(milliseconds ttl,
                          std::function<void(absl::StatusOr<etcd::Granted>)> done) {
  Ask<etcd::Granted>(
      [&etcd = etcd_, ttl] { return absl::StatusOr<etcd::Granted>(etcd.Grant(ttl)); },
      std::move(done));
}

void SimEtcdClient::KeepAlive(etcd::LeaseId lease,
                              std::function<void(absl::StatusOr<milliseconds>)> done) {
  Ask<milliseconds>(
      [&etcd = etcd_, lease]() -> absl::StatusOr<milliseconds> {
        if (const auto ttl = etcd.KeepAlive(lease)) return *ttl;
        return absl::NotFoundError("etcd has ended the lease");
      },
      std::move(done));
}

void SimEtcdClient::TimeToLive(etcd::LeaseId lease,
                               std::function<void(absl::StatusOr<milliseconds>)> done) {
  Ask<milliseconds>(
      [&etcd = etcd_, lease]() -> absl::StatusOr<milliseconds> {
        if (const auto ttl = etcd.TimeToLive(lease)) return *ttl;
        return absl::NotFoundError("etcd has ended the lease");
      },
      std::move(done));
}

void SimEtcdClient::Revoke(etcd::LeaseId lease, std::function<void(absl::Status)> done) {
  Ask<bool>(
      [&etcd = etcd_, lease] {
        etcd.Revoke(lease);
        return absl::StatusOr<bool>(true);
      },
      [done = std::move(done)](const absl::StatusOr<bool>& answer) { done(answer.status()); });
}

void SimEtcdClient::AwaitDeletion(const std::string& key, etcd::Revision after,
                                  std::function<void(absl::Status)> ended) {
  const auto told = std::make_shared<bool>(false);
  const std::weak_ptr<Process> process = process_;
  const auto once = [told, ended = std::move(ended)](const absl::Status& status) {
    if (!std::exchange(*told, true)) ended(status);
  };
  Send([&scheduler = scheduler_, &random = random_, &way = way_, &etcd = etcd_, key, after, process,
        once] {
    etcd.AwaitDeletion(
        key, after, [&scheduler, &random, &way, process, once](const absl::Status& status) {
          if (way.cut_from) return;
          scheduler.After(Duration(random.Below(way.longest.count() + 1)), [process, once, status] {
            if (const auto alive = process.lock()) alive->Do([=] { once(status); });
          });
        });
  });
  // A stream on which nothing comes is given up and made anew.
  process_->After(kSilence, [once] { once(absl::UnavailableError("the watch has ended")); });
}

void SimEtcdClient::Watch(const etcd::Range& range, etcd::Revision after,
                          std::function<void(std::vector<etcd::Change>)> changed,
                          std::function<void(absl::Status)> ended) {
  stream_ =
      std::make_shared<Stream>(Stream{.changed = std::move(changed), .ended = std::move(ended)});
  const std::weak_ptr<Process> process = process_;
  const std::weak_ptr<Stream> weak = stream_;
  Send([&scheduler = scheduler_, &random = random_, &way = way_, &etcd = etcd_, range, after,
        process, weak] {
    const auto stream = weak.lock();
    // A stream begins once.
    if (stream == nullptr || std::exchange(stream->arrived, true)) return;
    etcd.Watch(range, after,
               [&scheduler, &random, &way, process,
                weak](const absl::StatusOr<std::vector<etcd::Change>>& told) {
                 const auto stream = weak.lock();
                 if (stream == nullptr || stream->broken) return false;
                 Deliver(scheduler, random, way, process, stream, told);
                 return !stream->broken;
               });
  });
  process_->After(kSilence, [process, weak] {
    const auto stream = weak.lock();
    if (stream != nullptr && !stream->arrived) Break(process.lock(), stream);
  });
}

void SimEtcdClient::Deliver(Scheduler& scheduler, Random& random, const SimWay& way,
                            const std::weak_ptr<Process>& process,
                            const std::shared_ptr<Stream>& stream,
                            const absl::StatusOr<std::vector<etcd::Change>>& told) {
  const auto alive = process.lock();
  if (alive == nullptr) return;
  std::vector<std::vector<etcd::Change>> pieces(1);
  if (told.ok()) {
    for (const etcd::Change& change : *told) {
      if (random.Chance(1, 20)) pieces.emplace_back();
      pieces.back().push_back(change);
    }
  }
  for (std::vector<etcd::Change>& piece : pieces) {
    if (way.cut_from || random.Chance(way.lost_per_1000, 1000)) {
      stream->broken = true;
      return alive->After(kSilence, [process, weak = std::weak_ptr(stream)] {
        if (const auto silent = weak.lock()) Break(process.lock(), silent);
      });
    }
    Duration takes = Duration(random.Below(way.longest.count() + 1));
    if (random.Chance(way.late_per_1000, 1000)) takes = Duration(random.Below(kLatest.count()));
    stream->last = std::max(stream->last, scheduler.now() + takes);
    scheduler.At(stream->last, [process, weak = std::weak_ptr(stream), status = told.status(),
                                piece = std::move(piece)] {
      const auto alive = process.lock();
      if (alive == nullptr) return;
      alive->Do([weak, status, piece] {
        const auto stream = weak.lock();
        if (stream == nullptr || stream->ended == nullptr) return;
        if (status.ok()) return stream->changed(piece);
        std::exchange(stream->ended, nullptr)(status);
      });
    });
  }
}

void SimEtcdClient::Break(const std::shared_ptr<Process>& process,
                          const std::shared_ptr<Stream>& stream) {
  stream->broken = true;
  if (process == nullptr) return;
  process->Do([weak = std::weak_ptr(stream)] {
    const auto stream = weak.lock();
    if (stream == nullptr || stream->ended == nullptr) return;
    std::exchange(stream->ended, nullptr)(absl::UnavailableError("the watch has ended"));
  });
}

void SimEtcdClient::Compact(etcd::Revision revision) {
  Send([&etcd = etcd_, revision] { etcd.Compact(revision); });
}

}  // namespace muster::rendezvous

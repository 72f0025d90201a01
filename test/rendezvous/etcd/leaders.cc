#include "test/rendezvous/etcd/leaders.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A lease that was extended has to end first.
constexpr Duration kHealTime = seconds(30);

class Leaders {
 public:
  explicit Leaders(const LeadersOptions& options)
      : options_(options), random_(options.seed), etcd_(scheduler_, random_) {
    const int count = 2 + static_cast<int>(random_.Below(2));
    for (int i = 0; i < count; ++i) {
      daemons_.push_back(
          std::make_unique<SimLeader>(scheduler_, random_, etcd_, history_, i, options.mutations));
    }
    lost_per_1000_ = random_.Chance(1, 2) ? 30 : 0;
    late_per_1000_ = random_.Chance(1, 2) ? 30 : 0;
    if (options.clock_is_back) etcd_.SetClockBack();
  }

  LeadersResult Run() {
    for (const auto& daemon : daemons_) daemon->Start();
    Spoil();
    RunFor(options_.chaos);
    Heal();
    LeadersResult result{.tasks = scheduler_.tasks(), .history = history_};
    if (!history_.failure.empty()) {
      result.failure = absl::StrCat("seed ", options_.seed, " after ",
                                    scheduler_.now().time_since_epoch() / milliseconds(1),
                                    " ms: ", history_.failure);
    }
    return result;
  }

 private:
  void RunFor(Duration time) {
    const TimePoint end = scheduler_.now() + time;
    bool ended = false;
    scheduler_.At(end, [&ended] { ended = true; });
    while (!ended && history_.failure.empty() && scheduler_.Step()) {
    }
  }

  SimLeader& Any() { return *daemons_[static_cast<std::size_t>(random_.Below(Count()))]; }
  std::int64_t Count() const { return static_cast<std::int64_t>(daemons_.size()); }
  Duration Soon(Duration longest) { return random_.Between(Duration::zero(), longest); }

  void Spoil() {
    scheduler_.After(Soon(seconds(8)), [this] {
      if (healed_) return;
      SpoilSomething();
      Spoil();
    });
  }

  void SpoilSomething() {
    SimLeader& daemon = Any();
    switch (random_.Below(10)) {
      case 0:
        daemon.Kill();
        return scheduler_.After(Soon(seconds(5)), [&daemon] { daemon.Start(); });
      case 1:
        return daemon.Terminate();
      case 2:
      case 3:
        // Around the length of a lease.
        daemon.Stop();
        return scheduler_.After(Soon(random_.Chance(1, 2) ? seconds(3) : seconds(20)),
                                [&daemon] { daemon.Continue(); });
      case 4:
        daemon.way().cut_to = true;
        return MendLater(daemon);
      case 5:
        daemon.way().cut_from = true;
        return MendLater(daemon);
      case 6:
        daemon.way().lost_per_1000 = lost_per_1000_ * 10;
        daemon.way().late_per_1000 = late_per_1000_ * 10;
        daemon.way().longest = milliseconds(random_.Chance(1, 2) ? 100 : 900);
        return MendLater(daemon);
      case 7:
        return etcd_.FullUntil(scheduler_.now() + Soon(seconds(5)));
      case 8:
        return etcd_.Compact(etcd_.revision());
      default:
        return etcd_.ExtendLeases();
    }
  }

  void MendLater(SimLeader& daemon) {
    scheduler_.After(Soon(seconds(10)), [this, &daemon] { Mend(daemon); });
  }

  void Mend(SimLeader& daemon) {
    daemon.way() = {.lost_per_1000 = healed_ ? 0 : lost_per_1000_,
                    .late_per_1000 = healed_ ? 0 : late_per_1000_};
  }

  void Heal() {
    healed_ = true;
    etcd_.FullUntil(TimePoint());
    for (const auto& daemon : daemons_) {
      Mend(*daemon);
      daemon->Continue();
      daemon->Start();
    }
    RunFor(kHealTime);
    const std::uint64_t before = history_.acknowledgements;
    RunFor(seconds(5));
    int leading = 0;
    for (const auto& daemon : daemons_) leading += daemon->serves() ? 1 : 0;
    if (leading != 1) history_.Fail(absl::StrCat(leading, " daemons lead when all is healed"));
    if (history_.acknowledgements == before) history_.Fail("nothing is committed any more");
  }

  const LeadersOptions options_;
  Random random_;
  Scheduler scheduler_;
  SimEtcd etcd_;
  History history_;
  std::vector<std::unique_ptr<SimLeader>> daemons_;
  int lost_per_1000_ = 0;
  int late_per_1000_ = 0;
  bool healed_ = false;
};

}  // namespace

LeadersResult SimulateLeaders(const LeadersOptions& options) {
  return Leaders(options).Run();
}

}  // namespace muster::rendezvous

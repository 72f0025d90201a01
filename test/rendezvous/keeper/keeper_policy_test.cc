// The keeper's policy as transcripts: events go in, actions come out.
#include "rendezvous/keeper/keeper_policy.h"

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster::rendezvous {
namespace {

using namespace std::chrono_literals;

struct InWords {
  std::string operator()(const KeeperPolicy::Start& start) const {
    if (start.after_death) return "start again";
    return start.new_program ? "start new program" : "start";
  }
  std::string operator()(const KeeperPolicy::LetGo&) const { return "let go"; }
  std::string operator()(const KeeperPolicy::Announce& announce) const {
    return absl::StrCat("announce ", announce.port);
  }
  std::string operator()(const KeeperPolicy::Signal& signal) const {
    return absl::StrCat("signal ", sigabbrev_np(signal.number));
  }
  std::string operator()(const KeeperPolicy::Answer& answer) const {
    return answer.open ? "answer" : "answer no more";
  }
  std::string operator()(const KeeperPolicy::Log& log) const { return "\"" + log.sentence + "\""; }
  std::string operator()(const KeeperPolicy::End& end) const {
    return absl::StrCat("end ", end.exit_code);
  }
};

class KeeperPolicyTest : public testing::Test {
 protected:
  static constexpr DaemonEnd kKilled{.signal = SIGKILL};

  static std::string Of(const KeeperPolicy::Actions& actions) {
    return absl::StrJoin(actions, ", ", [](std::string* out, const KeeperPolicy::Action& action) {
      out->append(std::visit(InWords{}, action));
    });
  }

  std::string Died(DaemonEnd end) { return Of(policy_.OnDied(end, now_)); }
  // A daemon that was started reads what it remembers, and serves.
  void Serves() {
    EXPECT_EQ(Of(policy_.OnReadToGo(now_)), "let go");
    policy_.OnReady(29400);
  }
  void BeginsAndServes() {
    EXPECT_EQ(Of(policy_.OnBegin(now_)), "start");
    Serves();
    now_ += 1min;
  }
  // Goes on to the next deadline, which is so far away.
  std::string After(KeeperPolicy::Duration wait) {
    EXPECT_TRUE(policy_.deadline().has_value());
    if (!policy_.deadline()) return "no deadline";
    EXPECT_EQ(*policy_.deadline() - now_, wait);
    EXPECT_EQ(Of(policy_.OnTime(*policy_.deadline() - 1ns)), "");
    now_ = *policy_.deadline();
    return Of(policy_.OnTime(now_));
  }

  KeeperPolicy policy_;
  KeeperPolicy::TimePoint now_{1h};
};

TEST_F(KeeperPolicyTest, FirstStartIsAnnouncedOnceAndOnlyOnce) {
  EXPECT_EQ(Of(policy_.OnBegin(now_)), "start");
  // Nobody has ever heard of this keeper's daemon: there is nobody to answer.
  EXPECT_EQ(policy_.deadline(), std::nullopt);
  EXPECT_EQ(Of(policy_.OnReadToGo(now_)), "let go");
  EXPECT_EQ(Of(policy_.OnReady(4711)), "announce 4711");
  EXPECT_EQ(policy_.deadline(), std::nullopt);
  now_ += 1min;
  EXPECT_EQ(Died(kKilled), "\"the daemon was killed by SIGKILL; starting it again\", start again");
  EXPECT_EQ(Of(policy_.OnReadToGo(now_)), "let go");
  EXPECT_EQ(Of(policy_.OnReady(4711)), "");
}

TEST_F(KeeperPolicyTest, DaemonThatReadsForLongerThanAMomentHasItsAgentsAnswered) {
  BeginsAndServes();
  Died(kKilled);
  EXPECT_EQ(After(100ms), "answer");
  EXPECT_EQ(policy_.deadline(), std::nullopt);
  EXPECT_EQ(Of(policy_.OnReadToGo(now_)), "let go");
}

TEST_F(KeeperPolicyTest, PausesGrowUntilItServesAgain) {
  BeginsAndServes();
  EXPECT_EQ(Died(kKilled), "\"the daemon was killed by SIGKILL; starting it again\", start again");
  EXPECT_EQ(Died({.exit_code = 4}),
            "\"the daemon exited with code 4; starting it again in 100 ms\", answer");
  EXPECT_EQ(After(100ms), "start again");
  EXPECT_EQ(policy_.deadline(), std::nullopt) << "the desk is open already";
  EXPECT_EQ(Died({.exit_code = 4}),
            "\"the daemon exited with code 4; starting it again in 200 ms\"");
  EXPECT_EQ(After(200ms), "start again");
  for (const auto pause : {400ms, 800ms, 1600ms, 3200ms, 5000ms, 5000ms}) {
    Died({.exit_code = 4});
    EXPECT_EQ(After(pause), "start again");
  }
  Serves();
  now_ += 9s;
  EXPECT_EQ(Died(kKilled),
            "\"the daemon was killed by SIGKILL; starting it again in 5 s\", answer");
  EXPECT_EQ(After(5s), "start again");
  Serves();
  now_ += 10s;
  EXPECT_EQ(Died(kKilled), "\"the daemon was killed by SIGKILL; starting it again\", start again");
}

TEST_F(KeeperPolicyTest, DaemonThatCanNeverWorkEndsItsKeeper) {
  policy_.OnBegin(now_);
  EXPECT_EQ(Died({.exit_code = 4}), "end 4");
}

// "The daemon was started every five seconds, all night, over an etcd that it could not use."
TEST_F(KeeperPolicyTest, DaemonThatFindsWhatItNeedsUnusableAtItsStartEndsItsKeeper) {
  policy_.OnBegin(now_);
  // It stands by, and does not know yet.
  Serves();
  now_ += 100ms;
  EXPECT_EQ(Died({.exit_code = KeeperPolicy::kUnusable}), "end 7");
}

TEST_F(KeeperPolicyTest, DaemonThatHasServedIsTriedAgainAfterLongPausesWhereWhatItNeedsIsUnusable) {
  BeginsAndServes();
  EXPECT_EQ(Died(kKilled), "\"the daemon was killed by SIGKILL; starting it again\", start again");
  for (const KeeperPolicy::Duration pause : {100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 6400ms,
                                             12'800ms, 25'600ms, 51'200ms, 60'000ms, 60'000ms}) {
    Serves();
    Died({.exit_code = KeeperPolicy::kUnusable});
    EXPECT_EQ(After(pause), "start again");
  }
  // Somebody has mended it.
  Serves();
  EXPECT_EQ(Died(kKilled),
            "\"the daemon was killed by SIGKILL; starting it again in 5 s\", answer");
}

TEST_F(KeeperPolicyTest, DaemonThatIsKilledBeforeItServedIsTriedAgainInSilence) {
  policy_.OnBegin(now_);
  EXPECT_EQ(Died({.signal = SIGSEGV}),
            "\"the daemon was killed by SIGSEGV; starting it again\", start again");
  EXPECT_EQ(policy_.deadline(), std::nullopt);
  EXPECT_EQ(Died({.signal = SIGSEGV}),
            "\"the daemon was killed by SIGSEGV; starting it again in 100 ms\"");
  EXPECT_EQ(Died({.exit_code = 3}), "end 3");
}

TEST_F(KeeperPolicyTest, DaemonThatEndsInGoodOrderEndsItsKeeper) {
  BeginsAndServes();
  EXPECT_EQ(Died({.exit_code = 0}), "end 0");
}

TEST_F(KeeperPolicyTest, SignalIsPassedOnAndTheKeeperEndsWithItsDaemon) {
  BeginsAndServes();
  EXPECT_EQ(Of(policy_.OnToldToEnd(SIGINT)), "signal INT");
  EXPECT_EQ(Of(policy_.OnToldToEnd(SIGTERM)), "signal TERM");
  EXPECT_EQ(Of(policy_.OnToldToReplace(absl::OkStatus(), now_)), "") << "it ends already";
  EXPECT_EQ(Died({.exit_code = 0}), "end 0");
}

TEST_F(KeeperPolicyTest, DaemonThatIsKilledWhileItEndsIsReportedAsAShellWould) {
  BeginsAndServes();
  policy_.OnToldToEnd(SIGTERM);
  EXPECT_EQ(Died(kKilled), "\"the daemon was killed by SIGKILL while it was ending\", end 137");
}

TEST_F(KeeperPolicyTest, SignalDuringAPauseEndsTheKeeperAtOnce) {
  BeginsAndServes();
  Died(kKilled);
  Died(kKilled);
  EXPECT_EQ(Of(policy_.OnToldToEnd(SIGTERM)), "end 0");
}

TEST_F(KeeperPolicyTest, NobodyIsAnsweredForADaemonThatIsEnding) {
  BeginsAndServes();
  Died(kKilled);
  EXPECT_EQ(After(100ms), "answer");
  EXPECT_EQ(Of(policy_.OnToldToEnd(SIGTERM)), "answer no more, signal TERM");
  // It had read what it remembers when the signal came.
  EXPECT_EQ(Of(policy_.OnReadToGo(now_)), "let go");
  EXPECT_EQ(Died({.signal = SIGTERM}),
            "\"the daemon was killed by SIGTERM while it was ending\", end 143");
}

// systemd marked a stop as failed: just elected, the daemon found that it led no longer before it
// came to the signal.
TEST_F(KeeperPolicyTest, DaemonThatIsToldToEndAndLeadsNoLongerHasEndedInGoodOrder) {
  BeginsAndServes();
  policy_.OnToldToEnd(SIGTERM);
  EXPECT_EQ(Died({.exit_code = 6}), "end 0");
}

TEST_F(KeeperPolicyTest, DaemonThatIsReplacedMayLeadNoLonger) {
  BeginsAndServes();
  policy_.OnToldToReplace(absl::OkStatus(), now_);
  EXPECT_EQ(Died({.exit_code = 6}), "start new program");
}

TEST_F(KeeperPolicyTest, HangupReplacesTheDaemonOnce) {
  BeginsAndServes();
  EXPECT_EQ(Of(policy_.OnToldToReplace(absl::OkStatus(), now_)),
            "\"SIGHUP: the daemon is started again, with the program that is there now\", "
            "signal TERM");
  EXPECT_EQ(Of(policy_.OnToldToReplace(absl::OkStatus(), now_)), "");
  EXPECT_EQ(Died({.exit_code = 0}), "start new program");
  Serves();
  // The program is the new one from now on, and nobody counts the change as a failure.
  EXPECT_EQ(Died(kKilled), "\"the daemon was killed by SIGKILL; starting it again\", start again");
}

TEST_F(KeeperPolicyTest, DaemonThatDiesInsteadOfEndingIsReplacedAllTheSame) {
  BeginsAndServes();
  policy_.OnToldToReplace(absl::OkStatus(), now_);
  EXPECT_EQ(Died(kKilled),
            "\"the daemon was killed by SIGKILL while it was ending\", start new program");
}

TEST_F(KeeperPolicyTest, HangupDuringAPauseTriesTheNewProgramAtOnce) {
  BeginsAndServes();
  Died(kKilled);
  Died(kKilled);
  EXPECT_EQ(Of(policy_.OnToldToReplace(absl::OkStatus(), now_)),
            "\"SIGHUP: the daemon is started again, with the program that is there now\", "
            "start new program");
}

// "A typo in the file, and the reload ended the daemon that ran."
TEST_F(KeeperPolicyTest, HangupWithAConfigurationThatIsNoGoodChangesNothing) {
  BeginsAndServes();
  const absl::Status mistake = absl::InvalidArgumentError("file sets 'lisen'");
  const std::string said =
      "\"SIGHUP: file sets 'lisen'; the daemon goes on with the configuration read last\"";
  EXPECT_EQ(Of(policy_.OnToldToReplace(mistake, now_)), said);
  Died(kKilled);
  Died(kKilled);
  EXPECT_EQ(Of(policy_.OnToldToReplace(mistake, now_)), said);
  EXPECT_EQ(After(100ms), "start again");
}

TEST_F(KeeperPolicyTest, ToldToEndWhileItIsReplacedItEnds) {
  BeginsAndServes();
  policy_.OnToldToReplace(absl::OkStatus(), now_);
  EXPECT_EQ(Of(policy_.OnToldToEnd(SIGTERM)), "signal TERM");
  EXPECT_EQ(Died({.exit_code = 0}), "end 0");
}

}  // namespace
}  // namespace muster::rendezvous

// The keeper's policy as transcripts: events go in, actions come out.
#include "rendezvous/keeper/supervisor.h"

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
  std::string operator()(const SupervisorPolicy::Start& start) const {
    if (start.after_death) return "start again";
    return start.new_program ? "start new program" : "start";
  }
  std::string operator()(const SupervisorPolicy::LetGo&) const { return "let go"; }
  std::string operator()(const SupervisorPolicy::Announce& announce) const {
    return absl::StrCat("announce ", announce.port);
  }
  std::string operator()(const SupervisorPolicy::Signal& signal) const {
    return absl::StrCat("signal ", sigabbrev_np(signal.number));
  }
  std::string operator()(const SupervisorPolicy::Answer& answer) const {
    return answer.open ? "answer" : "answer no more";
  }
  std::string operator()(const SupervisorPolicy::Log& log) const {
    return "\"" + log.sentence + "\"";
  }
  std::string operator()(const SupervisorPolicy::End& end) const {
    return absl::StrCat("end ", end.exit_code);
  }
};

class SupervisorPolicyTest : public testing::Test {
 protected:
  static constexpr DaemonEnd kKilled{.signal = SIGKILL};

  static std::string Of(const SupervisorPolicy::Actions& actions) {
    return absl::StrJoin(actions, ", ",
                         [](std::string* out, const SupervisorPolicy::Action& action) {
                           out->append(std::visit(InWords{}, action));
                         });
  }

  std::string Died(DaemonEnd end) { return Of(policy_.OnDied(end, now_)); }
  // A started daemon reads its journal, and serves.
  void Serves() {
    EXPECT_EQ(Of(policy_.OnReadToGo(now_)), "let go");
    policy_.OnReady(29400);
  }
  void BeginsAndServes() {
    EXPECT_EQ(Of(policy_.OnBegin(now_)), "start");
    Serves();
    now_ += 1min;
  }
  // Advances to the next deadline, which is `wait` away.
  std::string After(SupervisorPolicy::Duration wait) {
    EXPECT_TRUE(policy_.deadline().has_value());
    if (!policy_.deadline()) return "no deadline";
    EXPECT_EQ(*policy_.deadline() - now_, wait);
    EXPECT_EQ(Of(policy_.OnTime(*policy_.deadline() - 1ns)), "");
    now_ = *policy_.deadline();
    return Of(policy_.OnTime(now_));
  }

  SupervisorPolicy policy_;
  SupervisorPolicy::TimePoint now_{1h};
};

TEST_F(SupervisorPolicyTest, FirstStartIsAnnouncedOnceAndOnlyOnce) {
  EXPECT_EQ(Of(policy_.OnBegin(now_)), "start");
  // No agent has ever heard of this keeper's daemon: there is no one to answer.
  EXPECT_EQ(policy_.deadline(), std::nullopt);
  EXPECT_EQ(Of(policy_.OnReadToGo(now_)), "let go");
  EXPECT_EQ(Of(policy_.OnReady(4711)), "announce 4711");
  EXPECT_EQ(policy_.deadline(), std::nullopt);
  now_ += 1min;
  EXPECT_EQ(Died(kKilled), "\"the daemon was killed by SIGKILL; restarting it\", start again");
  EXPECT_EQ(Of(policy_.OnReadToGo(now_)), "let go");
  EXPECT_EQ(Of(policy_.OnReady(4711)), "");
}

TEST_F(SupervisorPolicyTest, DaemonThatReadsForLongerThanAMomentHasItsAgentsAnswered) {
  BeginsAndServes();
  Died(kKilled);
  EXPECT_EQ(After(100ms), "answer");
  EXPECT_EQ(policy_.deadline(), std::nullopt);
  EXPECT_EQ(Of(policy_.OnReadToGo(now_)), "let go");
}

TEST_F(SupervisorPolicyTest, PausesGrowUntilItServesAgain) {
  BeginsAndServes();
  EXPECT_EQ(Died(kKilled), "\"the daemon was killed by SIGKILL; restarting it\", start again");
  EXPECT_EQ(Died({.exit_code = 4}),
            "\"the daemon exited with code 4; restarting it in 100 ms\", answer");
  EXPECT_EQ(After(100ms), "start again");
  EXPECT_EQ(policy_.deadline(), std::nullopt) << "the desk is open already";
  EXPECT_EQ(Died({.exit_code = 4}), "\"the daemon exited with code 4; restarting it in 200 ms\"");
  EXPECT_EQ(After(200ms), "start again");
  for (const auto pause : {400ms, 800ms, 1600ms, 3200ms, 5000ms, 5000ms}) {
    Died({.exit_code = 4});
    EXPECT_EQ(After(pause), "start again");
  }
  Serves();
  now_ += 9s;
  EXPECT_EQ(Died(kKilled), "\"the daemon was killed by SIGKILL; restarting it in 5 s\", answer");
  EXPECT_EQ(After(5s), "start again");
  Serves();
  now_ += 10s;
  EXPECT_EQ(Died(kKilled), "\"the daemon was killed by SIGKILL; restarting it\", start again");
}

TEST_F(SupervisorPolicyTest, DaemonThatCanNeverWorkEndsItsKeeper) {
  policy_.OnBegin(now_);
  EXPECT_EQ(Died({.exit_code = 4}), "end 4");
}

// "The daemon was restarted every five seconds, all night, because of an etcd that it could not
// use."
TEST_F(SupervisorPolicyTest, DaemonThatFindsWhatItNeedsUnusableAtItsStartEndsItsKeeper) {
  policy_.OnBegin(now_);
  // It is a standby, and does not know yet.
  Serves();
  now_ += 100ms;
  EXPECT_EQ(Died({.exit_code = SupervisorPolicy::kUnusable}), "end 7");
}

TEST_F(SupervisorPolicyTest,
       DaemonThatHasServedIsTriedAgainAfterLongPausesWhereWhatItNeedsIsUnusable) {
  BeginsAndServes();
  EXPECT_EQ(Died(kKilled), "\"the daemon was killed by SIGKILL; restarting it\", start again");
  for (const SupervisorPolicy::Duration pause :
       {100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 6400ms, 12'800ms, 25'600ms, 51'200ms, 60'000ms,
        60'000ms}) {
    Serves();
    Died({.exit_code = SupervisorPolicy::kUnusable});
    EXPECT_EQ(After(pause), "start again");
  }
  // The problem has been fixed.
  Serves();
  EXPECT_EQ(Died(kKilled), "\"the daemon was killed by SIGKILL; restarting it in 5 s\", answer");
}

TEST_F(SupervisorPolicyTest, DaemonThatIsKilledBeforeItServedIsTriedAgainInSilence) {
  policy_.OnBegin(now_);
  EXPECT_EQ(Died({.signal = SIGSEGV}),
            "\"the daemon was killed by SIGSEGV; restarting it\", start again");
  EXPECT_EQ(policy_.deadline(), std::nullopt);
  EXPECT_EQ(Died({.signal = SIGSEGV}),
            "\"the daemon was killed by SIGSEGV; restarting it in 100 ms\"");
  EXPECT_EQ(Died({.exit_code = 3}), "end 3");
}

TEST_F(SupervisorPolicyTest, DaemonThatEndsInGoodOrderEndsItsKeeper) {
  BeginsAndServes();
  EXPECT_EQ(Died({.exit_code = 0}), "end 0");
}

TEST_F(SupervisorPolicyTest, SignalIsPassedOnAndTheKeeperEndsWithItsDaemon) {
  BeginsAndServes();
  EXPECT_EQ(Of(policy_.OnToldToEnd(SIGINT)), "signal INT");
  EXPECT_EQ(Of(policy_.OnToldToEnd(SIGTERM)), "signal TERM");
  EXPECT_EQ(Of(policy_.OnToldToReplace(absl::OkStatus(), now_)), "") << "it ends already";
  EXPECT_EQ(Died({.exit_code = 0}), "end 0");
}

TEST_F(SupervisorPolicyTest, DaemonThatIsKilledWhileItEndsIsReportedAsAShellWould) {
  BeginsAndServes();
  policy_.OnToldToEnd(SIGTERM);
  EXPECT_EQ(Died(kKilled), "\"the daemon was killed by SIGKILL while stopping\", end 137");
}

TEST_F(SupervisorPolicyTest, SignalDuringAPauseEndsTheKeeperAtOnce) {
  BeginsAndServes();
  Died(kKilled);
  Died(kKilled);
  EXPECT_EQ(Of(policy_.OnToldToEnd(SIGTERM)), "end 0");
}

TEST_F(SupervisorPolicyTest, NobodyIsAnsweredForADaemonThatIsEnding) {
  BeginsAndServes();
  Died(kKilled);
  EXPECT_EQ(After(100ms), "answer");
  EXPECT_EQ(Of(policy_.OnToldToEnd(SIGTERM)), "answer no more, signal TERM");
  // It had read its journal when the signal came.
  EXPECT_EQ(Of(policy_.OnReadToGo(now_)), "let go");
  EXPECT_EQ(Died({.signal = SIGTERM}),
            "\"the daemon was killed by SIGTERM while stopping\", end 143");
}

// systemd marked a stop as failed: just elected, the daemon found that it was no longer the leader
// before it handled the signal.
TEST_F(SupervisorPolicyTest, DaemonThatIsToldToEndAndLeadsNoLongerHasEndedInGoodOrder) {
  BeginsAndServes();
  policy_.OnToldToEnd(SIGTERM);
  EXPECT_EQ(Died({.exit_code = 6}), "end 0");
}

TEST_F(SupervisorPolicyTest, DaemonThatIsReplacedMayLeadNoLonger) {
  BeginsAndServes();
  policy_.OnToldToReplace(absl::OkStatus(), now_);
  EXPECT_EQ(Died({.exit_code = 6}), "start new program");
}

TEST_F(SupervisorPolicyTest, HangupReplacesTheDaemonOnce) {
  BeginsAndServes();
  EXPECT_EQ(Of(policy_.OnToldToReplace(absl::OkStatus(), now_)),
            "\"SIGHUP: the daemon is started again, with the program that is there now\", "
            "signal TERM");
  EXPECT_EQ(Of(policy_.OnToldToReplace(absl::OkStatus(), now_)), "");
  EXPECT_EQ(Died({.exit_code = 0}), "start new program");
  Serves();
  // The program is the new one from now on, and the replacement does not count as a failure.
  EXPECT_EQ(Died(kKilled), "\"the daemon was killed by SIGKILL; restarting it\", start again");
}

TEST_F(SupervisorPolicyTest, DaemonThatDiesInsteadOfEndingIsReplacedAllTheSame) {
  BeginsAndServes();
  policy_.OnToldToReplace(absl::OkStatus(), now_);
  EXPECT_EQ(Died(kKilled),
            "\"the daemon was killed by SIGKILL while stopping\", start new program");
}

TEST_F(SupervisorPolicyTest, HangupDuringAPauseTriesTheNewProgramAtOnce) {
  BeginsAndServes();
  Died(kKilled);
  Died(kKilled);
  EXPECT_EQ(Of(policy_.OnToldToReplace(absl::OkStatus(), now_)),
            "\"SIGHUP: the daemon is started again, with the program that is there now\", "
            "start new program");
}

// "A typo in the file, and the reload stopped the running daemon."
TEST_F(SupervisorPolicyTest, HangupWithAConfigurationThatIsNoGoodChangesNothing) {
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

TEST_F(SupervisorPolicyTest, ToldToEndWhileItIsReplacedItEnds) {
  BeginsAndServes();
  policy_.OnToldToReplace(absl::OkStatus(), now_);
  EXPECT_EQ(Of(policy_.OnToldToEnd(SIGTERM)), "signal TERM");
  EXPECT_EQ(Died({.exit_code = 0}), "end 0");
}

}  // namespace
}  // namespace muster::rendezvous

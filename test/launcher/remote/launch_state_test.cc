#include "launcher/remote/launch_state.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace muster::launcher {
namespace {

using enum HostNews::What;

std::string LaunchText(const LaunchState::Begin& begin) {
  return absl::StrCat("begin at '", begin.endpoint, "'");
}
std::string LaunchText(const LaunchState::Say& say) {
  return absl::StrCat("say ", say.sentence);
}
std::string LaunchText(const LaunchState::Fail& fail) {
  return absl::StrCat("fail: ", fail.sentence);
}
std::string LaunchText(const LaunchState::ExpectEnd& expected) {
  return absl::StrCat("expect the end: ", expected.sentence);
}
std::string LaunchText(const LaunchState::Finish&) {
  return "finish";
}

class LaunchStateTest : public testing::Test {
 protected:
  // With three hosts.
  static LaunchState OfThree(int min_nodes, bool serves = true) {
    return LaunchState(
        {.names = {"a", "b", "c"}, .min_nodes = min_nodes, .serves_rendezvous = serves});
  }

  static std::string Hear(LaunchState& call, const HostNews& news) {
    std::string text;
    for (const LaunchState::Action& action : call.On(news)) {
      absl::StrAppend(&text, text.empty() ? "" : "; ",
                      std::visit([](const auto& one) { return LaunchText(one); }, action));
    }
    return text;
  }
  static std::string Answered(LaunchState& call, HostIndex host) {
    return Hear(call, {.host = host, .what = kAnswered, .endpoint = absl::StrCat("at", host)});
  }
  static std::string Failed(LaunchState& call, HostIndex host, HostNews::What what) {
    return Hear(call, {.host = host, .what = what, .reason = "refused"});
  }
  static std::string Ended(LaunchState& call, HostIndex host, int code) {
    return Hear(call, {.host = host, .what = kEnded, .exit_code = code});
  }
};

TEST_F(LaunchStateTest, NodesBeginWhenTheFirstHostOfTheListHasAnswered) {
  LaunchState call = OfThree(3);
  EXPECT_EQ(Answered(call, 2), "");
  EXPECT_EQ(Answered(call, 0), "begin at 'at0'");
  EXPECT_EQ(Answered(call, 1), "");
  EXPECT_EQ(Ended(call, 0, 0), "");
  EXPECT_EQ(Ended(call, 2, 0), "");
  EXPECT_EQ(Ended(call, 1, 0), "finish");
  EXPECT_EQ(call.exit_code(), 0);
}

TEST_F(LaunchStateTest, NobodyWaitsForOneHostWhereTheRendezvousIsElsewhere) {
  LaunchState call = OfThree(3, /*serves=*/false);
  EXPECT_EQ(Answered(call, 2), "begin at ''");
  EXPECT_EQ(call.serving_host(), std::nullopt);
}

TEST_F(LaunchStateTest, HostThatTheJobNeedsAndThatCannotBeReachedEndsIt) {
  LaunchState call = OfThree(3);
  EXPECT_EQ(Answered(call, 0), "begin at 'at0'");
  EXPECT_EQ(Failed(call, 1, kNotYet), "");
  EXPECT_EQ(Failed(call, 1, kUnreachable), "fail: b cannot be reached: refused");
  EXPECT_EQ(Failed(call, 2, kUnreachable), "");
}

TEST_F(LaunchStateTest, JobThatMayBeSmallerBeginsAtTheNextHostThatIsThere) {
  LaunchState call = OfThree(1);
  EXPECT_EQ(Answered(call, 2), "");
  EXPECT_EQ(Failed(call, 0, kUnreachable), "say a cannot be reached: refused");
  EXPECT_EQ(Failed(call, 1, kUnreachable), "say b cannot be reached: refused; begin at 'at2'");
  EXPECT_EQ(call.serving_host(), 2);
  EXPECT_EQ(Answered(call, 1), "");
  EXPECT_EQ(Ended(call, 1, 0), "");
  EXPECT_EQ(Ended(call, 2, 0), "finish");
}

TEST_F(LaunchStateTest, HostThatIsLostComesBackButNotTheOneThatServes) {
  LaunchState call = OfThree(3);
  Answered(call, 0);
  Answered(call, 1);
  Answered(call, 2);
  EXPECT_EQ(Failed(call, 2, kLost), "say c was lost: refused");
  EXPECT_EQ(Answered(call, 2), "");
  EXPECT_EQ(Failed(call, 0, kLost), "fail: a, where the rendezvous was served, was lost: refused");
}

TEST_F(LaunchStateTest, CodeIsThatOfTheHostThatServesOrOfTheFirstThatFailed) {
  LaunchState first = OfThree(3);
  for (const HostIndex host : {0, 1, 2}) Answered(first, host);
  Ended(first, 2, 7);
  EXPECT_EQ(first.exit_code(), 7);
  Ended(first, 0, 1);
  Ended(first, 1, 3);
  EXPECT_EQ(first.exit_code(), 1);
  EXPECT_EQ(first.deciding_host(), 0);
}

// "The agent of one node was killed, and the others waited for ten minutes."
TEST_F(LaunchStateTest, NodeThatIsKilledMakesTheOthersEndWhereTheyNeedIt) {
  LaunchState call = OfThree(3);
  for (const HostIndex host : {0, 1, 2}) Answered(call, host);
  EXPECT_EQ(Ended(call, 1, 137),
            "expect the end: the node on b was killed by signal 9, and the job cannot go on with 2 "
            "of 3 nodes");
  EXPECT_EQ(Ended(call, 2, 1), "");

  LaunchState smaller = OfThree(2);
  for (const HostIndex host : {0, 1, 2}) Answered(smaller, host);
  EXPECT_EQ(Ended(smaller, 1, 137), "");
}

TEST_F(LaunchStateTest, NewsOfHostsThatAreNotInTheListAreNoNews) {
  LaunchState call = OfThree(3);
  EXPECT_EQ(Answered(call, 3), "");
  EXPECT_EQ(Answered(call, -1), "");
}

}  // namespace
}  // namespace muster::launcher

// FanOut with a few hosts, step by step. simulation_test covers random faults.
#include "launcher/remote/fan_out.h"

#include <string>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using enum HostNews::What;

std::string Text(const FanOut::Open& open) {
  return absl::StrCat("open ", open.link, " to host ", open.host);
}
std::string Text(const FanOut::Hand& hand) {
  return absl::StrCat("hand hosts ",
                      absl::StrJoin(hand.charges, ",",
                                    [](std::string* out, const FanOut::Charge& charge) {
                                      absl::StrAppend(out, charge.host);
                                    }),
                      " to ", hand.link);
}
std::string Text(const FanOut::Close& close) {
  return absl::StrCat("close ", close.link);
}
std::string Text(const HostNews& news) {
  const char* const names[] = {"answered", "not yet", "unreachable", "lost", "ended"};
  return absl::StrCat("host ", news.host, " ", names[static_cast<int>(news.what)],
                      news.reason.empty() ? "" : ": ", news.reason);
}

class FanOutTest : public testing::Test {
 protected:
  static std::string Show(const FanOut::Actions& actions) {
    return absl::StrJoin(actions, "; ", [](std::string* out, const FanOut::Action& action) {
      absl::StrAppend(out, std::visit([](const auto& one) { return Text(one); }, action));
    });
  }
  std::string Adopt(int hosts) { return Show(fan_out_.Adopt(Hosts(hosts), now_)); }
  std::string Answer(FanOut::LinkId link) { return Show(fan_out_.OnAnswer(link, "", now_)); }
  std::string End(FanOut::LinkId link) { return Show(fan_out_.OnLinkEnd(link, "cut", now_)); }
  std::string Hear(FanOut::LinkId link, HostIndex host, HostNews::What what) {
    return Show(fan_out_.OnNews(link, {.host = host, .what = what}, now_));
  }
  std::string After(milliseconds time) {
    now_ += time;
    return Show(fan_out_.OnTime(now_));
  }
  static std::vector<FanOut::Charge> Hosts(int count) {
    std::vector<FanOut::Charge> charges;
    for (HostIndex i = 0; i < count; ++i) charges.push_back({.host = i});
    return charges;
  }
  static FanOut MakeAsking() {
    FanOut::Options options;
    options.fanout = 2;
    options.answer_timeout = seconds(4);
    options.limit = seconds(4);
    return FanOut(options);
  }
  static FanOut Make(bool retries) {
    FanOut::Options options;
    options.fanout = 2;
    options.attempts = 2;
    if (retries) options.retry = seconds(30);
    return FanOut(options);
  }

  FanOut fan_out_ = Make(/*retries=*/false);
  FanOut::Time now_{};
};

TEST_F(FanOutTest, HostsThatAreTooManyAreHandedToThoseThatAnswer) {
  EXPECT_EQ(Adopt(5), "open 1 to host 0; open 2 to host 2");
  EXPECT_EQ(Answer(2), "host 2 answered; hand hosts 3,4 to 2");
  EXPECT_EQ(Answer(1), "host 0 answered; hand hosts 1 to 1");
  EXPECT_EQ(Hear(2, 4, kAnswered), "host 4 answered");
  EXPECT_EQ(fan_out_.next_deadline(), std::nullopt);
}

TEST_F(FanOutTest, NextHostLeadsWhereTheFirstCannotBeReached) {
  EXPECT_EQ(Adopt(5), "open 1 to host 0; open 2 to host 2");
  EXPECT_EQ(End(2), "host 2 not yet: cut; open 3 to host 3");
  EXPECT_EQ(Answer(3), "host 3 answered; hand hosts 4 to 3");
  // Both links are in use, and one leads to a host that is up: that one tries it again.
  EXPECT_EQ(After(milliseconds(500)), "hand hosts 2 to 3");
}

TEST_F(FanOutTest, HostThatDoesNotAnswerIsGivenUpInTheEnd) {
  EXPECT_EQ(Adopt(1), "open 1 to host 0");
  EXPECT_EQ(After(seconds(59)), "");
  EXPECT_EQ(After(seconds(1)), "close 1; host 0 not yet: it has not answered within 60 s");
  EXPECT_EQ(After(milliseconds(500)), "open 2 to host 0");
  EXPECT_EQ(End(2), "host 0 unreachable: cut");
  EXPECT_EQ(fan_out_.next_deadline(), std::nullopt);
}

// `muster ps --hosts=silent --timeout=3` took 10.5 s.
TEST_F(FanOutTest, AllAttemptsTogetherHaveALimit) {
  FanOut::Options options;
  options.attempts = 9;
  options.answer_timeout = seconds(3);
  options.limit = seconds(3);
  FanOut asking(options);
  EXPECT_EQ(Show(asking.Adopt({{.host = 0}, {.host = 1}}, now_)),
            "open 1 to host 0; open 2 to host 1");
  now_ += seconds(2);
  EXPECT_EQ(Show(asking.OnLinkEnd(2, "cut", now_)), "host 1 not yet: cut");
  now_ += milliseconds(500);
  EXPECT_EQ(Show(asking.OnTime(now_)), "open 3 to host 1");
  now_ += milliseconds(500);
  EXPECT_EQ(Show(asking.OnTime(now_)),
            "close 1; host 0 unreachable: it has not answered within 3 s; close 3; host 1 "
            "unreachable: it has not answered within 3 s");
  EXPECT_EQ(asking.next_deadline(), std::nullopt);
}

// `muster ps --hosts=... --timeout=2` took 6.2 s for 40 silent hosts.
TEST_F(FanOutTest, HostsBehindSilentOnesAreTriedWithinTheLimit) {
  FanOut asking = MakeAsking();
  EXPECT_EQ(Show(asking.Adopt(Hosts(5), now_)), "open 1 to host 0; open 2 to host 1");
  const auto after = [&](milliseconds time) {
    now_ += time;
    return Show(asking.OnTime(now_));
  };
  EXPECT_EQ(after(seconds(2)),
            "close 1; host 0 not yet: it has not answered within 2 s; close 2; host 1 not yet: it "
            "has not answered within 2 s; open 3 to host 2; open 4 to host 3");
  EXPECT_EQ(after(milliseconds(500)), "") << "there is no place";
  EXPECT_EQ(after(milliseconds(500)),
            "close 3; host 2 not yet: it has not answered within 1 s; open 5 to host 4");
  EXPECT_EQ(after(milliseconds(500)), "") << "the others have been tried more often than host 4";
  EXPECT_EQ(
      after(milliseconds(500)),
      "close 4; host 3 unreachable: it has not answered within 4 s; close 5; host 4 "
      "unreachable: it has not answered within 4 s; host 0 unreachable: it has not answered "
      "within 4 s; host 1 unreachable: it has not answered within 4 s; host 2 unreachable: it "
      "has not answered within 4 s");
  EXPECT_EQ(asking.next_deadline(), std::nullopt);
}

TEST_F(FanOutTest, WhatASlowHostWasToStartIsStartedByOthersAndItMayStillAnswer) {
  FanOut asking = MakeAsking();
  EXPECT_EQ(Show(asking.Adopt(Hosts(5), now_)), "open 1 to host 0; open 2 to host 1");
  now_ += seconds(1);
  EXPECT_EQ(Show(asking.OnAnswer(2, "", now_)), "host 1 answered; hand hosts 3 to 2");
  now_ += seconds(1);
  EXPECT_EQ(Show(asking.OnTime(now_)), "hand hosts 2,4 to 2");
  now_ += seconds(1);
  EXPECT_EQ(Show(asking.OnAnswer(1, "", now_)), "host 0 answered");
}

TEST_F(FanOutTest, HostsForWhichThereWasNoTimeAreNamed) {
  FanOut::Options options;
  options.fanout = 1;
  options.answer_timeout = options.pause = seconds(4);
  options.limit = seconds(4);
  FanOut asking(options);
  EXPECT_EQ(Show(asking.Adopt(Hosts(2), now_)), "open 1 to host 0");
  now_ += seconds(4);
  EXPECT_EQ(Show(asking.OnTime(now_)),
            "close 1; host 0 unreachable: it has not answered within 4 s; host 1 unreachable: it "
            "was not tried within 4 s, as hosts before it did not answer");
}

TEST_F(FanOutTest, WhoFailsTooLateForAnotherAttemptIsGivenUpAtOnce) {
  FanOut::Options options;
  options.limit = seconds(3);
  FanOut asking(options);
  EXPECT_EQ(Show(asking.Adopt({{.host = 0}}, now_)), "open 1 to host 0");
  now_ += milliseconds(2600);
  EXPECT_EQ(Show(asking.OnLinkEnd(1, "cut", now_)), "host 0 unreachable: cut");
}

TEST_F(FanOutTest, HostThatIsGivenUpIsTriedAgainWhereTheJobGoesOnWithoutIt) {
  FanOut elastic = Make(/*retries=*/true);
  EXPECT_EQ(Show(elastic.Adopt({{.host = 0, .failures = 1}}, now_)), "open 1 to host 0");
  EXPECT_EQ(Show(elastic.OnLinkEnd(1, "cut", now_)), "host 0 unreachable: cut");
  now_ += seconds(30);
  EXPECT_EQ(Show(elastic.OnTime(now_)), "open 2 to host 0");
  // A repetition is not reported.
  EXPECT_EQ(Show(elastic.OnLinkEnd(2, "cut", now_)), "");
  now_ += seconds(30);
  EXPECT_EQ(Show(elastic.OnTime(now_)), "open 3 to host 0");
  EXPECT_EQ(Show(elastic.OnAnswer(3, "", now_)), "host 0 answered");
}

TEST_F(FanOutTest, WhatALostHostHadStartedIsStartedAgainWhenItHasHadTimeToEnd) {
  Adopt(3);
  EXPECT_EQ(Answer(2), "host 1 answered; hand hosts 2 to 2");
  EXPECT_EQ(Answer(1), "host 0 answered");
  now_ += seconds(60);
  EXPECT_EQ(End(2), "host 2 lost: the host that started it was lost: cut; host 1 lost: cut");
  EXPECT_EQ(After(seconds(1)), "");
  EXPECT_EQ(After(seconds(1)), "open 3 to host 1");
}

TEST_F(FanOutTest, HostWhoseNodeHasEndedIsNotStartedAgain) {
  Adopt(2);
  Answer(1);
  Answer(2);
  EXPECT_EQ(Hear(1, 0, kEnded), "host 0 ended");
  EXPECT_EQ(End(1), "");
  EXPECT_EQ(End(2), "host 1 lost: cut");
  EXPECT_EQ(After(seconds(2)), "open 3 to host 1");
}

TEST_F(FanOutTest, NothingIsStartedAfterTheStop) {
  Adopt(5);
  Answer(1);
  EXPECT_EQ(Show(fan_out_.Stop()), "close 2");
  EXPECT_EQ(fan_out_.next_deadline(), std::nullopt);
  EXPECT_EQ(Show(fan_out_.Adopt({{.host = 7}}, now_)), "");
  EXPECT_EQ(End(1), "host 1 lost: the host that started it was lost: cut; host 0 lost: cut");
  EXPECT_EQ(After(seconds(100)), "");
}

// A host may not report on hosts that were not handed to it.
TEST_F(FanOutTest, NewsOfOthersHostsAreIgnored) {
  Adopt(2);
  Answer(1);
  EXPECT_EQ(Hear(1, 1, kEnded), "");
  EXPECT_EQ(Hear(1, 0, kUnreachable), "");
  EXPECT_EQ(Hear(1, 9, kAnswered), "");
  EXPECT_EQ(Answer(1), "");
  EXPECT_EQ(Answer(8), "");
}

}  // namespace
}  // namespace muster::launcher

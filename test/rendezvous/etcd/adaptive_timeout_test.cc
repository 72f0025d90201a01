#include "rendezvous/etcd/adaptive_timeout.h"

#include <gtest/gtest.h>

namespace muster::rendezvous::etcd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class AdaptiveTimeoutTest : public testing::Test {
 protected:
  // No member is heard until it can wait no longer.
  void BadMoment() {
    milliseconds waited = patience_.now();
    for (int i = 0; i < 5; ++i) waited = patience_.Longer(waited);
  }

  AdaptiveTimeout patience_{seconds(1), 8};
};

TEST_F(AdaptiveTimeoutTest, GrowsWhileNobodyIsHeard) {
  EXPECT_EQ(patience_.now(), seconds(1));
  EXPECT_EQ(patience_.Longer(seconds(1)), seconds(2));
  EXPECT_EQ(patience_.now(), seconds(2));
  BadMoment();
  EXPECT_EQ(patience_.now(), seconds(8));
}

TEST_F(AdaptiveTimeoutTest, IsAsUsualAfterAQuickAnswer) {
  BadMoment();
  patience_.Answered(milliseconds(5));
  EXPECT_EQ(patience_.now(), seconds(1));
}

// "Etcd stood still for a moment, an hour later a member's machine lost its power, and every write
// waited eight seconds for it": answers took just over half a second, as they do there.
TEST_F(AdaptiveTimeoutTest, ComesBackDownWhereAnswersAreNeverVeryQuick) {
  BadMoment();
  patience_.Answered(milliseconds(600));
  EXPECT_EQ(patience_.now(), seconds(2));
  patience_.Answered(milliseconds(600));
  EXPECT_EQ(patience_.now(), seconds(2)) << "not shorter than what answers take";
}

TEST_F(AdaptiveTimeoutTest, StaysWhereAnswersTakeLong) {
  BadMoment();
  patience_.Answered(seconds(3));
  EXPECT_EQ(patience_.now(), seconds(8));
}

// Of journals that are opened beside one another, one may have pages that take etcd long, and the
// answers to the others must not cut its waiting short.
TEST_F(AdaptiveTimeoutTest, SlowTransactionIsHeardBesideQuickOnes) {
  milliseconds waited = patience_.now();
  for (int i = 0; i < 2; ++i) {
    waited = patience_.Longer(waited);
    patience_.Answered(milliseconds(5));
  }
  EXPECT_EQ(waited, seconds(4));
  EXPECT_EQ(patience_.now(), seconds(1));
}

}  // namespace
}  // namespace muster::rendezvous::etcd

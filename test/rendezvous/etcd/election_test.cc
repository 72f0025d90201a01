// What one daemon does in an election, without an etcd.
#include "rendezvous/etcd/election.h"

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

namespace muster::rendezvous::etcd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ElectionTest : public testing::Test {
 protected:
  // Answers as etcd would that has another leader's key, and goes on to the next deadline, until
  // that time. What refuses answers every campaign.
  void FollowUntil(Election::TimePoint end, const absl::Status& refuses = absl::OkStatus()) {
    election_.Begin(now_);
    for (;;) {
      while (const auto action = election_.NextAction()) {
        if (const auto* const ask = std::get_if<Election::AskForLease>(&*action)) {
          election_.OnLease(ask->call, Granted{1, seconds(2)}, now_);
        } else if (const auto* const keep = std::get_if<Election::KeepAlive>(&*action)) {
          election_.OnKeptAlive(keep->call, milliseconds(2000), now_);
        } else if (const auto* const look = std::get_if<Election::AskAfterLease>(&*action)) {
          election_.OnTimeToLive(look->call, milliseconds(1000), now_);
        } else if (const auto* const trouble = std::get_if<Election::Trouble>(&*action)) {
          troubles_.push_back(trouble->why);
        } else if (const auto* const campaign = std::get_if<Election::Campaign>(&*action)) {
          ++campaigns_;
          if (!refuses.ok()) {
            election_.OnCampaign(campaign->call, refuses, now_);
            continue;
          }
          const KeyValue key{.key = "/leader", .value = "other", .created = 5, .lease = 9};
          election_.OnCampaign(campaign->call, Outcome{.revision = 7, .found = {{.keys = {key}}}},
                               now_);
        }
      }
      const auto due = election_.NextDeadline();
      if (!due || *due > end) break;
      now_ = *due;
      election_.Tick(now_);
    }
    now_ = end;
  }

  Election election_{{.key = "/leader", .name = "me"}};
  Election::TimePoint now_{};
  int campaigns_ = 0;
  std::vector<std::string> troubles_;
};

// "The password of etcd's user was changed in spring. When the leader's machine died in autumn
// nobody could lead, and no log had said a word": etcd goes on telling who was let in once.
TEST_F(ElectionTest, FollowerFindsOutThatItIsRefusedWhileThereIsALeader) {
  FollowUntil(now_ + seconds(30));
  EXPECT_GE(campaigns_, 3);
  EXPECT_TRUE(election_.StandsBy());
  EXPECT_TRUE(troubles_.empty());
  FollowUntil(now_ + seconds(30), absl::PermissionDeniedError("no such password"));
  EXPECT_FALSE(election_.StandsBy());
  EXPECT_EQ(troubles_, std::vector<std::string>{"no such password"});
}

// It was said once, on a day whose log was gone.
TEST_F(ElectionTest, RefusalIsToldOnceAMinuteUntilItIsOver) {
  FollowUntil(now_ + seconds(205), absl::PermissionDeniedError("no such password"));
  EXPECT_EQ(troubles_.size(), 4u);
  FollowUntil(now_ + seconds(20));
  EXPECT_TRUE(election_.StandsBy());
  FollowUntil(now_ + seconds(20), absl::PermissionDeniedError("no such password"));
  EXPECT_EQ(troubles_.size(), 5u);
}

// "etcd was restored from a snapshot. The leader went on serving what was gone, until it next had
// something to write": its key and its lease were in the snapshot.
TEST_F(ElectionTest, LeaderWhoseEtcdHasGoneBackLeadsNoLonger) {
  election_.Begin(now_);
  std::string lost;
  bool won = false;
  while (const auto action = election_.NextAction()) {
    if (const auto* const ask = std::get_if<Election::AskForLease>(&*action)) {
      election_.OnLease(ask->call, Granted{1, seconds(2)}, now_);
    } else if (std::get_if<Election::Won>(&*action) != nullptr) {
      won = true;
    } else if (const auto* const gone = std::get_if<Election::Lost>(&*action)) {
      lost = gone->why;
    } else if (const auto* const campaign = std::get_if<Election::Campaign>(&*action)) {
      if (!won) {
        election_.OnCampaign(campaign->call, Outcome{.held = true, .revision = 7}, now_);
        continue;
      }
      // All members that have something to say about it are to be heard.
      EXPECT_FALSE(campaign->transaction.then.empty());
      election_.OnCampaign(campaign->call, absl::AbortedError("restored"), now_);
    }
  }
  EXPECT_TRUE(won);
  EXPECT_EQ(lost, "restored");
  EXPECT_FALSE(election_.Leads(now_));
}

}  // namespace
}  // namespace muster::rendezvous::etcd

#include "rendezvous/server/tenant_openings.h"

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

class TenantOpeningsTest : public testing::Test {
 protected:
  void End(const std::string& tenant, const absl::Status& status = absl::OkStatus()) {
    const auto opened = under_way_.extract(tenant);
    ASSERT_FALSE(opened.empty()) << tenant << " is not being opened";
    opened.mapped()(status);
  }

  bool at_once_ = false;
  absl::Status at_once_status_;
  TenantOpenings::TimePoint now_{};
  std::vector<std::string> begun_;
  std::map<std::string, std::function<void(const absl::Status&)>> under_way_;
  TenantOpenings openings_{
      {.at_once = 2, .after_failure = seconds(2), .now = [this] { return now_; }},
      [this](const std::string& tenant, std::function<void(const absl::Status&)> opened) {
        begun_.push_back(tenant);
        if (at_once_) return opened(at_once_status_);
        under_way_.emplace(tenant, std::move(opened));
      }};
};

// "I added sixty tenants, and the daemon lost the lead."
TEST_F(TenantOpeningsTest, ManyTenantsAreOpenedAFewAtATime) {
  for (int i = 0; i < 60; ++i) {
    EXPECT_TRUE(absl::IsUnavailable(openings_.Ask(absl::StrCat("t", i))));
    EXPECT_LE(under_way_.size(), 2u);
  }
  int opened = 0;
  for (int i = 0; i < 60; ++i) {
    const std::string tenant = absl::StrCat("t", i);
    EXPECT_TRUE(openings_.Await(tenant, [&opened] { ++opened; }));
    End(tenant);
    EXPECT_LE(under_way_.size(), 2u);
  }
  EXPECT_EQ(opened, 60);
  EXPECT_EQ(begun_.size(), 60u);
}

TEST_F(TenantOpeningsTest, AllWhoAskForOneTenantAwaitOneOpening) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(absl::IsUnavailable(openings_.Ask("alice")));
  int over = 0;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(openings_.Await("alice", [&over] { ++over; }));
  End("alice");
  EXPECT_EQ(over, 3);
  EXPECT_THAT(begun_, ElementsAre("alice"));
  EXPECT_FALSE(openings_.Await("alice", [] {}));
}

// A journal on the daemon's own disk.
TEST_F(TenantOpeningsTest, WhatIsOpenAtOnceIsNotAwaited) {
  at_once_ = true;
  EXPECT_TRUE(openings_.Ask("alice").ok());
  EXPECT_FALSE(openings_.Await("alice", [] {}));
}

TEST_F(TenantOpeningsTest, WhatCannotBeOpenedIsTriedAgainAfterAWhile) {
  at_once_ = true;
  at_once_status_ = absl::UnavailableError("it is damaged");
  EXPECT_EQ(openings_.Ask("alice").message(), "it is damaged");
  EXPECT_EQ(openings_.Ask("alice").message(), "it is damaged");
  EXPECT_EQ(begun_.size(), 1u);
  // Nobody else has to do with that.
  at_once_status_ = absl::OkStatus();
  EXPECT_TRUE(openings_.Ask("bob").ok());
  now_ += seconds(2);
  EXPECT_TRUE(openings_.Ask("alice").ok());
}

// "Of one tenant the journal was damaged, and every three seconds the whole daemon stood still for
// as long as it took to read it."
TEST_F(TenantOpeningsTest, WhatCannotBeOpenedIsTriedLessAndLessOften) {
  at_once_ = true;
  at_once_status_ = absl::UnavailableError("it is damaged");
  // The tenant's agents ask all the time.
  const auto tries = [this](seconds time) {
    const std::size_t before = begun_.size();
    for (const auto end = now_ + time; now_ < end; now_ += milliseconds(500)) {
      EXPECT_FALSE(openings_.Ask("alice").ok());
    }
    return begun_.size() - before;
  };
  EXPECT_EQ(tries(seconds(60)), 5u);
  EXPECT_LE(tries(seconds(600)), 11u);
  // Once it has succeeded it begins anew, should it be closed.
  at_once_status_ = absl::OkStatus();
  now_ += seconds(60);
  EXPECT_TRUE(openings_.Ask("alice").ok());
  at_once_status_ = absl::UnavailableError("it is damaged");
  EXPECT_EQ(tries(seconds(60)), 5u);
}

TEST_F(TenantOpeningsTest, WhyOneCannotBeOpenedIsNewsOnce) {
  EXPECT_TRUE(openings_.IsNews("alice", "it is damaged"));
  EXPECT_FALSE(openings_.IsNews("alice", "it is damaged"));
  EXPECT_TRUE(openings_.IsNews("bob", "it is damaged"));
  EXPECT_TRUE(openings_.IsNews("alice", "the disk is full"));
  // Once the tenant is open, whatever happens to it after that is news again.
  at_once_ = true;
  EXPECT_TRUE(openings_.Ask("alice").ok());
  EXPECT_TRUE(openings_.IsNews("alice", "the disk is full"));
}

TEST_F(TenantOpeningsTest, WhoAwaitsOneThatFailsHearsWhy) {
  EXPECT_TRUE(absl::IsUnavailable(openings_.Ask("alice")));
  absl::Status heard;
  EXPECT_TRUE(openings_.Await("alice", [&] { heard = openings_.Ask("alice"); }));
  End("alice", absl::UnavailableError("it is damaged"));
  EXPECT_EQ(heard.message(), "it is damaged");
  EXPECT_EQ(begun_.size(), 1u);
}

}  // namespace
}  // namespace muster::rendezvous

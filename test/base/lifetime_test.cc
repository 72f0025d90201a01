#include "base/lifetime.h"

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

namespace muster::base {
namespace {

TEST(LifetimeTest, GuardedCallIsMadeWhileTheObjectIsThere) {
  const Lifetime lifetime;
  int sum = 0;
  const std::function<void(int, int)> add = lifetime.Guard([&](int a, int b) { sum = a + b; });
  add(2, 3);
  EXPECT_EQ(sum, 5);
}

TEST(LifetimeTest, GuardedCallThatOutlivesTheObjectDoesNothing) {
  std::optional<Lifetime> lifetime(std::in_place);
  bool called = false;
  const std::function<void()> call = lifetime->Guard([&] { called = true; });
  lifetime.reset();
  call();
  EXPECT_FALSE(called);
}

TEST(LifetimeTest, ArgumentsThatCannotBeCopiedArePassedOn) {
  const Lifetime lifetime;
  std::unique_ptr<int> taken;
  auto take = lifetime.Guard([&](std::unique_ptr<int> given) { taken = std::move(given); });
  take(std::make_unique<int>(7));
  EXPECT_EQ(*taken, 7);
}

TEST(LifetimeTest, CallbackThatDestroysTheObjectIsNoticed) {
  std::optional<Lifetime> lifetime(std::in_place);
  const Lifetime::Watch watch = lifetime->watch();
  EXPECT_FALSE(watch.over());
  lifetime.reset();
  EXPECT_TRUE(watch.over());
}

TEST(LifetimeTest, EndIsForCallsGuardedBeforeAndAfter) {
  Lifetime lifetime;
  int calls = 0;
  auto before = lifetime.Guard([&] { ++calls; });
  lifetime.End();
  auto after = lifetime.Guard([&] { ++calls; });
  before();
  after();
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace muster::base

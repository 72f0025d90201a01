#include "base/lifetime.h"

#include <string>

#include <gtest/gtest.h>

namespace muster::base {
namespace {

TEST(SharedValueTest, CopiesAreTheSameValue) {
  const SharedValue<std::string> one = std::string("value");
  const SharedValue<std::string> other = one;
  EXPECT_EQ(&*one, &*other);
  EXPECT_EQ(one->size(), 5u);
}

TEST(SharedValueTest, IsComparedByValue) {
  EXPECT_EQ(SharedValue<std::string>("value"), SharedValue<std::string>("value"));
  EXPECT_FALSE(SharedValue<std::string>("value") == SharedValue<std::string>("other"));
}

TEST(SharedValueTest, HasADefault) {
  const SharedValue<std::string> none;
  EXPECT_EQ(*none, "");
  EXPECT_EQ(&*none, &*SharedValue<std::string>());
}

}  // namespace
}  // namespace muster::base

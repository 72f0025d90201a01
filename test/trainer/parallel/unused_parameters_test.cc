#include "trainer/parallel/comm_hooks.h"

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

// As LibTorch 1.13 words it.
const std::string kMessage =
    "Expected to have finished reduction in the prior iteration before starting a new one. This "
    "error indicates that your module has parameters that were not used in producing loss. ...\n"
    "Parameter indices which did not receive grad for rank 1: 0 2\n In addition, you can set ...";

TEST(UnusedParametersTest, AreNamed) {
  EXPECT_EQ(
      UnusedParametersSentence(kMessage, {"a", "b", "c"}, 1, false),
      "the last step's loss on rank 1 did not depend on parameters a, c, so not all gradients "
      "were averaged: set find_unused_parameters (--find-unused-parameters), or leave them "
      "out of the model");
}

TEST(UnusedParametersTest, WithTheFlagAnOutputWasLeftOut) {
  EXPECT_EQ(
      UnusedParametersSentence("Expected to have finished reduction", {"a"}, 0, true),
      "the last step's loss on rank 0 did not depend on some parameters, so not all gradients "
      "were averaged: use every output of the model in the loss");
}

TEST(UnusedParametersTest, AHundredNamesAreNotListed) {
  std::string message =
      "Expected to have finished reduction. Parameter indices which did not receive grad for rank "
      "0:";
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) {
    names.push_back("p" + std::to_string(i));
    message += " " + std::to_string(i);
  }
  const auto sentence = UnusedParametersSentence(message, names, 0, false);
  ASSERT_TRUE(sentence);
  EXPECT_NE(sentence->find("p6, p7 and 92 more, so"), std::string::npos) << *sentence;
}

TEST(UnusedParametersTest, OtherErrorsAreLeftAlone) {
  EXPECT_FALSE(UnusedParametersSentence("Connection closed by peer", {"a"}, 0, false));
}

TEST(UnusedParametersTest, NumbersThatAreNoParametersAreIgnored) {
  const auto sentence = UnusedParametersSentence(kMessage, {"a"}, 1, false);
  EXPECT_NE(sentence->find("did not depend on parameter a, so"), std::string::npos) << *sentence;
}

}  // namespace
}  // namespace muster::trainer

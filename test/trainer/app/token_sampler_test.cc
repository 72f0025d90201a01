#include "trainer/app/generate.h"

#include <cmath>
#include <limits>
#include <map>

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

// The logarithms of 1/2, 1/4, 1/8, 1/8, and of another base: only differences count.
const std::vector<double> kScores = {7 + std::log(0.25), 7 + std::log(0.5), 7 + std::log(0.125),
                                     7 + std::log(0.125)};
constexpr int kDraws = 8000;

// How often each token is drawn, of kDraws times.
std::map<std::size_t, double> Shares(const SamplingOptions& options) {
  TokenSampler sampler(options);
  std::map<std::size_t, double> shares;
  for (int i = 0; i < kDraws; ++i) shares[sampler.Next(kScores).value()] += 1.0 / kDraws;
  return shares;
}

TEST(TokenSamplerTest, WithoutTemperatureTheLikeliestIsTaken) {
  TokenSampler sampler({.temperature = 0, .seed = 3});
  EXPECT_EQ(sampler.Next(kScores), 1u);
  EXPECT_EQ(sampler.Next({1, 5, 5, 2}), 1u) << "the first of those that are alike";
  EXPECT_EQ(sampler.Next({-4}), 0u);
}

TEST(TokenSamplerTest, TokensAreDrawnAsOftenAsTheModelSays) {
  const auto shares = Shares({.temperature = 1});
  EXPECT_NEAR(shares.at(1), 0.5, 0.03);
  EXPECT_NEAR(shares.at(0), 0.25, 0.03);
  EXPECT_NEAR(shares.at(2), 0.125, 0.03);
  EXPECT_NEAR(shares.at(3), 0.125, 0.03);
}

TEST(TokenSamplerTest, TemperatureSharpensAndFlattens) {
  // Probabilities squared: 1/4, 1/16, 1/64, 1/64, in proportion.
  EXPECT_NEAR(Shares({.temperature = 0.5}).at(1), 16.0 / 22, 0.03);
  EXPECT_NEAR(Shares({.temperature = 1e6}).at(1), 0.25, 0.03);
  EXPECT_EQ(Shares({.temperature = 1e-6}).size(), 1u);
}

TEST(TokenSamplerTest, OnlyTheTopTokensAreDrawn) {
  const auto shares = Shares({.temperature = 1, .top_k = 2});
  EXPECT_EQ(shares.size(), 2u);
  EXPECT_NEAR(shares.at(1), 2.0 / 3, 0.03);
  EXPECT_NEAR(shares.at(0), 1.0 / 3, 0.03);
  const auto three = Shares({.temperature = 1, .top_k = 3});
  EXPECT_EQ(three.count(3), 0u) << "of two that are alike, the first is in";
  EXPECT_EQ(Shares({.temperature = 1, .top_k = 99}).size(), 4u);
}

// The generator is standard, the rest is ours: these draws must never change.
TEST(TokenSamplerTest, TheSameSeedDrawsTheSameTokensEverywhere) {
  const auto draw = [](std::uint64_t seed) {
    TokenSampler sampler({.temperature = 1, .seed = seed});
    std::string tokens;
    for (int i = 0; i < 20; ++i) tokens += static_cast<char>('0' + sampler.Next(kScores).value());
    return tokens;
  };
  EXPECT_EQ(draw(1), "00101310110120101211");
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
}

TEST(TokenSamplerTest, NothingIsDrawnFromWhatIsNoNumber) {
  for (const double temperature : {0.0, 1.0}) {
    TokenSampler sampler({.temperature = temperature});
    EXPECT_EQ(sampler.Next({1, std::nan(""), 2}), std::nullopt);
    EXPECT_EQ(sampler.Next({1, std::numeric_limits<double>::infinity()}), std::nullopt);
    EXPECT_EQ(sampler.Next({-std::numeric_limits<double>::infinity(), 1}), 1u);
  }
}

}  // namespace
}  // namespace muster::trainer

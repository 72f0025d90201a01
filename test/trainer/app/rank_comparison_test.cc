#include "trainer/app/training/agreement.h"

#include <memory>

#include <gtest/gtest.h>

#include "trainer/app/options/options.h"

namespace muster::trainer {
namespace {

class Samples : public Dataset {
 public:
  explicit Samples(std::int64_t size) : size_(size) {}
  std::int64_t size() const override { return size_; }
  DataShape shape() const override { return {}; }
  Batch Gather(const std::vector<std::int64_t>&, std::int64_t, bool) const override { return {}; }

 private:
  const std::int64_t size_;
};

RankFacts Rank(std::vector<const char*> arguments, std::int64_t train = 60'000,
               std::int64_t test = 10'000) {
  arguments.insert(arguments.begin(), "muster-train");
  const auto options = ParseOptions(static_cast<int>(arguments.size()), arguments.data());
  EXPECT_TRUE(options.ok()) << options.status();
  return FactsOf(options->settings,
                 {std::make_shared<Samples>(train), std::make_shared<Samples>(test)});
}

TEST(RankComparisonTest, RanksThatDifferInWhatIsTheirOwnAreAlike) {
  EXPECT_EQ(FirstDifference({Rank({})}), "");
  EXPECT_EQ(FirstDifference({Rank({"--lr", "0.1", "--checkpoint-dir", "/a", "--trace", "t"}),
                             Rank({"--lr", "1e-1", "--checkpoint-dir", "/b", "--trace", "u",
                                   "--threads", "3", "--data", "/here", "--loss-log", "l",
                                   "--timeout", "9", "--checkpoint", "m.pt"})}),
            "");
}

TEST(RankComparisonTest, TheFirstDifferenceIsASentence) {
  EXPECT_EQ(FirstDifference({Rank({"--lr", "0.1"}), Rank({"--lr", "0.1"}), Rank({"--lr", "0.2"})}),
            "rank 2 has --lr 0.2, and rank 0 has 0.1: give all ranks the same options");
  EXPECT_EQ(FirstDifference({Rank({}), Rank({"--flip"})}),
            "rank 1 has --flip true, and rank 0 has false: give all ranks the same options");
  EXPECT_EQ(FirstDifference({Rank({}), Rank({"--checkpoint-dir", "/a"})}),
            "rank 1 has --checkpoint-dir, and rank 0 has none: give all ranks the same options");
  EXPECT_EQ(FirstDifference({Rank({"--trace", "t"}), Rank({})}),
            "rank 1 has no --trace, and rank 0 has one: give all ranks the same options");
}

TEST(RankComparisonTest, DataIsComparedByItsSize) {
  EXPECT_EQ(FirstDifference({Rank({}), Rank({}), Rank({}, 59'999)}),
            "rank 2's data set has 59,999 images, and rank 0's 60,000 images: give all ranks the "
            "same data");
  EXPECT_EQ(FirstDifference({Rank({}), Rank({}, 60'000, 999)}),
            "rank 1's test set has 999 images, and rank 0's 10,000 images: give all ranks the same "
            "data");
}

// A node had an older copy of the table, with other columns or classes, and the ranks trained
// anyway.
TEST(RankComparisonTest, DataIsComparedByItsNamesAndItsScale) {
  const auto with = [](const DataFacts& facts) {
    return FactsOf({}, {std::make_shared<Samples>(9), std::make_shared<Samples>(9), facts});
  };
  const DataFacts facts = {
      .normalization = {{0.5}, {1}}, .columns = {"x", "y"}, .classes = {"cat", "dog"}};
  EXPECT_EQ(FirstDifference({with(facts), with(facts)}), "");
  DataFacts columns = facts;
  columns.columns = {"y", "x"};
  EXPECT_EQ(FirstDifference({with(facts), with(columns)}),
            "rank 1's data has other columns than rank 0's: give all ranks the same data");
  DataFacts classes = facts;
  classes.classes = {"cat", "cow"};
  EXPECT_EQ(FirstDifference({with(facts), with(classes)}),
            "rank 1's data has other classes than rank 0's: give all ranks the same data");
  DataFacts scale = facts;
  scale.normalization.mean = {0.5000000000000001};
  EXPECT_EQ(
      FirstDifference({with(facts), with(scale)}),
      "rank 1's data has other mean or deviation than rank 0's: give all ranks the same data");
}

// Programs of two versions may not even have the same options, so the version comes first.
TEST(RankComparisonTest, TheVersionComesFirst) {
  RankFacts other = Rank({"--lr", "0.2"});
  other.front().second = "9.0";
  const std::string sentence = FirstDifference({Rank({}), other});
  EXPECT_EQ(sentence.rfind("rank 1 has muster-train 9.0, and rank 0 has ", 0), 0u) << sentence;
}

}  // namespace
}  // namespace muster::trainer

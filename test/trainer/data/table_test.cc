#include "trainer/data/samples/table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "test/support/temp_dir.h"

namespace muster::trainer {
namespace {

class TableTest : public testing::Test {
 protected:
  absl::StatusOr<TableSplits> Read(const std::string& text, const std::string& test = "",
                                   const std::string& target = "kind") {
    DataOptions options = {.paths = {dir_.Write("train.csv", text)},
                           .target = target,
                           .test_share = .25,
                           .known = known_,
                           .labels_needed = labels_needed_};
    if (!test.empty()) options.test_paths = {dir_.Write("test.csv", test)};
    return ReadTable(options);
  }

  // Without "read .../train.csv: ".
  std::string Refusal(const std::string& text, const std::string& test = "",
                      const std::string& target = "kind") {
    const auto table = Read(text, test, target);
    EXPECT_EQ(table.status().code(), absl::StatusCode::kInvalidArgument) << table.status();
    const std::string message(table.status().message());
    const std::string start = "read " + dir_.path() + "/";
    EXPECT_EQ(message.substr(0, start.size()), start);
    return message.substr(std::min(start.size(), message.size()));
  }

  const test::TempDir dir_;
  DataFacts known_;  // of the model
  bool labels_needed_ = true;
};

TEST_F(TableTest, NumbersAreStandardizedByTheRowsToTrainOn) {
  const auto table =
      Read("x,kind,y\n1,red,5\n3,blue,5\n5,red,5\n7,blue,5\n", "x,kind,y\n4,blue,5\n14,red,6\n");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->facts.columns, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(table->facts.classes, (std::vector<std::string>{"blue", "red"}));
  EXPECT_EQ(table->train.labels, (std::vector<std::int64_t>{1, 0, 1, 0}));
  EXPECT_EQ(table->test.labels, (std::vector<std::int64_t>{0, 1}));
  // Of 1, 3, 5, 7 the mean is 4 and the variance 5; y is constant.
  const auto root = static_cast<float>(std::sqrt(5.0));
  const std::vector<float> train = {-3 / root, 0, -1 / root, 0, 1 / root, 0, 3 / root, 0};
  ASSERT_EQ(table->train.values.size(), train.size());
  for (std::size_t i = 0; i < train.size(); ++i) {
    EXPECT_FLOAT_EQ(table->train.values[i], train[i]) << i;
  }
  EXPECT_FLOAT_EQ(table->test.values[0], 0);
  EXPECT_FLOAT_EQ(table->test.values[2], 10 / root);
  EXPECT_FLOAT_EQ(table->test.values[3], 1);
}

// Rounding gave a constant column of 0.1 a deviation of 1e-16, and a model that saw 0.2 there was
// wrong about everything.
TEST_F(TableTest, AColumnThatIsTheSameInAllRowsHasNoScale) {
  std::string text = "x,kind,flag\n";
  for (int row = 0; row < 171; ++row) absl::StrAppend(&text, row, row % 2 ? ",a" : ",b", ",0.1\n");
  const auto table = Read(text, "x,kind,flag\n1,a,0.2\n");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->facts.normalization.mean[1], 0.1);
  EXPECT_EQ(table->facts.normalization.deviation[1], 1);
  EXPECT_EQ(table->train.values[1], 0);
  EXPECT_FLOAT_EQ(table->test.values[1], 0.1f);
}

TEST_F(TableTest, WholeNumbersAreSortedAsNumbersAndNamesAsText) {
  EXPECT_EQ(Read("x,kind\n1,10\n2,9\n3,-1\n4,9\n")->facts.classes,
            (std::vector<std::string>{"-1", "9", "10"}));
  EXPECT_EQ(Read("x,kind\n1,10\n2,9\n3,none\n")->facts.classes,
            (std::vector<std::string>{"10", "9", "none"}));
}

TEST_F(TableTest, AShareOfTheRowsIsHeldOut) {
  std::string text = "x,kind\n";
  for (int i = 0; i < 40; ++i) absl::StrAppend(&text, i, ",", i < 20 ? "a" : "b", "\n");
  const std::string path = dir_.Write("x.csv", text);
  const auto read = [&](std::uint64_t seed) {
    return ReadTable({.paths = {path}, .target = "kind", .seed = seed, .test_share = .25});
  };
  const auto table = read(1);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->train.count(), 30);
  EXPECT_EQ(table->test.count(), 10);
  // Both classes are held out even if the file is sorted by class.
  EXPECT_EQ(std::set<std::int64_t>(table->test.labels.begin(), table->test.labels.end()).size(),
            2u);
  EXPECT_EQ(read(1)->test.values, table->test.values);
  EXPECT_NE(read(2)->test.values, table->test.values);
}

TEST_F(TableTest, MistakesNameFileLineAndColumn) {
  EXPECT_EQ(Refusal("x,kind\n1,a\n\nhigh,b\n"),
            "train.csv: line 4, column 'x': 'high' is not a finite number; leave the column out, "
            "or write numbers for what it says");
  EXPECT_NE(Refusal("x,kind\n1,a\nnan,b\n").find("'nan' is not a finite number"),
            std::string::npos);
  EXPECT_EQ(Refusal("x,kind\n1,a\n,b\n"),
            "train.csv: line 3, column 'x': it is empty; fill it in, or leave the row out");
  EXPECT_EQ(Refusal("x,kind\n1,a\n2,\n"),
            "train.csv: line 3, column 'kind': it is empty; fill it in, or leave the row out");
  EXPECT_EQ(Refusal("x,kind\n1,a\n1,2,b\n"),
            "train.csv: line 3: it has 3 fields, and there are 2 columns");
  EXPECT_EQ(Refusal("x,y\n1,a\n"),
            "train.csv: line 1: there is no column 'kind' for --target; the columns are x, y");
  EXPECT_EQ(Refusal("1,2\n3,4\n", "", "2"),
            "train.csv: line 1: it has only numbers, and the first line must name the columns");
  EXPECT_EQ(Refusal("x,x,kind\n1,2,a\n"), "train.csv: line 1: two columns are named 'x'");
  EXPECT_EQ(Refusal(",kind\n1,a\n"),
            "train.csv: line 1: column 1 has no name; name it or leave it out");
  EXPECT_EQ(Refusal("kind\na\n"), "train.csv: line 1: there is no column besides that of --target");
  EXPECT_EQ(Refusal("x,kind\n"), "train.csv: it has no rows below the names of its columns");
  EXPECT_EQ(Refusal("x,kind\n1,a\n2,a\n"),
            "train.csv: column 'kind' has only one class, 'a', and two are needed");
  EXPECT_EQ(Refusal("kind,x\na,1e308\nb,-1e308\n", "kind,x\na,1\n"),
            "train.csv: column 'x': its numbers are too large to be standardized");
}

// Another file was standardized by its own rows, so that a model saw other numbers for the same
// values; and its columns were matched by position.
TEST_F(TableTest, AModelSeesNumbersAsInItsTraining) {
  const auto trained =
      Read("x,kind,y\n1,red,5\n3,blue,5\n5,red,5\n7,blue,5\n", "x,kind,y\n4,red,5\n");
  ASSERT_TRUE(trained.ok()) << trained.status();
  known_ = trained->facts;
  EXPECT_EQ(known_.normalization.mean, (std::vector<double>{4, 5}));
  const auto other = Read("y,x,kind\n6,14,red\n6,14,blue\n", "kind,y,x\nblue,4,4\n");
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->facts, known_);
  const auto root = static_cast<float>(std::sqrt(5.0));
  EXPECT_FLOAT_EQ(other->train.values[0], 10 / root);
  EXPECT_FLOAT_EQ(other->train.values[1], 1);
  EXPECT_EQ(other->test.values, (std::vector<float>{0, -1}));
  EXPECT_EQ(Refusal("x,kind\n1,a\n2,b\n"),
            "train.csv: there is no column 'y', and the model was trained with one");
  EXPECT_EQ(Refusal("x,y,z,kind\n1,1,1,a\n2,2,2,b\n"),
            "train.csv: the model was trained without a column 'z'; leave the column out");
  known_ = {.normalization = {{0.5}, {0.25}}};
  EXPECT_EQ(Refusal("x,kind\n1,a\n2,b\n"),
            "train.csv: it is a table, and the model was trained on images");
}

// In a file with fewer classes each had another number than in the training, so that right answers
// counted as wrong.
TEST_F(TableTest, ClassesKeepTheNumbersOfTheTraining) {
  known_ = {.classes = {"a", "b", "c"}};
  const auto other = Read("x,kind\n1,c\n2,c\n3,b\n", "x,kind\n1,c\n");
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->train.labels, (std::vector<std::int64_t>{2, 2, 1}));
  EXPECT_EQ(other->test.labels, (std::vector<std::int64_t>{2}));
  EXPECT_EQ(other->facts.classes, known_.classes);
  EXPECT_TRUE(Read("x,kind\n1,c\n2,c\n").ok()) << "one class is enough to measure";
  EXPECT_EQ(Refusal("x,kind\n1,a\n2,d\n"),
            "train.csv: column 'kind': the model does not know the class 'd', only a, b, c; leave "
            "such rows out");
  EXPECT_EQ(Refusal("x,kind\n1,a\n2,b\n", "x,kind\n1,0\n"),
            "test.csv: column 'kind': the model does not know the class '0', only a, b, c; leave "
            "such rows out");
}

// Rows to be predicted have no class yet.
TEST_F(TableTest, RowsMayLackALabelWhenNoneIsNeeded) {
  known_ = {.normalization = {{0, 0}, {1, 1}}, .columns = {"x", "y"}, .classes = {"a", "b"}};
  labels_needed_ = false;
  const auto unknown = Read("x,kind,y\n1,b,2\n3,e,4\n5,d,6\n", "y,x,kind\n1,2,f\n");
  ASSERT_TRUE(unknown.ok()) << unknown.status();
  EXPECT_EQ(unknown->facts.classes, (std::vector<std::string>{"a", "b", "d", "e", "f"}));
  EXPECT_EQ(unknown->train.labels, (std::vector<std::int64_t>{1, 3, 2}));
  EXPECT_EQ(unknown->test.labels, (std::vector<std::int64_t>{4}));
  const auto none = Read("y,x\n2,1\n4,3\n");
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(none->train.values, (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(none->train.labels, (std::vector<std::int64_t>{-1, -1}));
  EXPECT_EQ(none->test.count(), 0) << "no row is held out";
  labels_needed_ = true;
  EXPECT_EQ(Refusal("y,x\n2,1\n4,3\n"),
            "train.csv: line 1: there is no column 'kind' for --target; the columns are y, x");
}

TEST_F(TableTest, AnUndividedTableHoldsNoRowOut) {
  const auto table = ReadTable({.paths = {dir_.Write("x.csv", "x,kind\n3,b\n1,a\n2,a\n")},
                                .target = "kind",
                                .undivided = true});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->train.labels, (std::vector<std::int64_t>{1, 0, 0}));
  EXPECT_EQ(table->test.count(), 0);
}

// Checkpoints and JSON only hold UTF-8, and a file may be in Latin-1.
TEST_F(TableTest, NamesThatAreNoTextAreEscaped) {
  const auto table = Read(
      "gr\xf6\xdf"
      "e,kind\n1,\xe9t\xe9\n2,\u00e9t\u00e9\n",
      "gr\xf6\xdf"
      "e,kind\n1,\xe9t\xe9\n");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->facts.columns, (std::vector<std::string>{"gr\\xf6\\xdfe"}));
  EXPECT_EQ(table->facts.classes, (std::vector<std::string>{"\\xe9t\\xe9", "\u00e9t\u00e9"}));
  EXPECT_EQ(table->test.labels, (std::vector<std::int64_t>{0}));
}

TEST_F(TableTest, TheRowsToTestOnMustFit) {
  const std::string train = "x,kind\n1,a\n2,b\n";
  EXPECT_EQ(Refusal(train, "x,kind\n1,c\n"),
            "test.csv: column 'kind': there is no class 'c' in " + dir_.Path("train.csv"));
  EXPECT_EQ(Refusal(train, "y,kind\n1,a\n"),
            "test.csv: its columns are not those of " + dir_.Path("train.csv"));
}

}  // namespace
}  // namespace muster::trainer

// eval and predict on other data than that of the training: a model is to see it as it saw its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "base/json.h"
#include "test/support/temp_dir.h"
#include "test/trainer/app/ranks.h"
#include "trainer/io/torch_file.h"

namespace muster::trainer {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

Arguments operator+(Arguments first, const Arguments& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

// Rows of two classes, which differ in x and in y; both are multiplied by `scale`.
std::string Table(double scale) {
  std::string text = "x,kind,y\n";
  for (int i = 0; i < 60; ++i) {
    const bool small = i % 2 == 0;
    absl::StrAppend(&text, scale * ((small ? 10 : 30) + i % 7), small ? ",small," : ",large,",
                    scale * ((small ? 5 : 2) + i % 5), "\n");
  }
  return text;
}

// A number of an IDX file.
std::string BigEndian(std::uint32_t number) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(number >> shift & 0xff);
  return bytes;
}

class OtherDataTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return dir_.Path(name); }

  // Both files of a split of MNIST's kind: 20 images, each of one grey from `darkest`.
  void WriteIdx(const std::string& dir, const std::string& split, int darkest) const {
    constexpr std::uint32_t kImages = 20;
    fs::create_directories(Path(dir));
    std::string images = BigEndian(0x803) + BigEndian(kImages) + BigEndian(28) + BigEndian(28);
    std::string labels = BigEndian(0x801) + BigEndian(kImages);
    for (std::uint32_t i = 0; i < kImages; ++i) {
      images += std::string(28 * 28, static_cast<char>(darkest + static_cast<int>(i) * 3));
      labels += static_cast<char>(i % 10);
    }
    dir_.Write(dir + "/" + split + "-images-idx3-ubyte", images);
    dir_.Write(dir + "/" + split + "-labels-idx1-ubyte", labels);
  }

  // Trains on the table `train`, with one rank or more, and keeps the checkpoint in `to`.
  void TrainOnTable(const std::string& train, const std::string& to, const Arguments& more) const {
    TrainOk(Arguments{"--dataset", "csv", "--data", Path(train), "--target", "kind", "--epochs",
                      "3", "--batch-size", "10", "--checkpoint-dir", Path(to)} +
            more);
  }

  std::string Predict(const std::string& checkpoint, const Arguments& more) const {
    return TrainOk(Arguments{"predict", "--checkpoint", Path(checkpoint)} + more);
  }

  const test::TempDir dir_;
};

// A table in other units, or of another day, was standardized by itself, so that its rows looked
// like those of the training however different they were.
TEST_F(OtherDataTest, RowsAreStandardizedAsThoseOfTheTraining) {
  dir_.Write("train.csv", Table(1));
  dir_.Write("large.csv", Table(100));
  dir_.Write("new.csv", "y,x,kind\n5,10,small\n2,33,large\n300,-20,small\n");
  TrainOnTable("train.csv", "whole", {});
  TrainOnTable("train.csv", "shards", {"--checkpoint-format", "shards"});
  TrainOk({"consolidate", Path("shards"), "--out", Path("one.pt")});
  for (const char* checkpoint : {"whole", "shards", "one.pt"}) {
    const std::string lines = Predict(checkpoint, {"--test-data", Path("new.csv")});
    EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 3) << lines;
    EXPECT_EQ(Predict(checkpoint, {"--data", Path("large.csv"), "--test-data", Path("new.csv")}),
              lines)
        << checkpoint;
  }
}

// Ranks that do not read the checkpoint standardize as the one that does.
TEST_F(OtherDataTest, RanksOfEvalReadDataAlike) {
  dir_.Write("train.csv", Table(1));
  dir_.Write("large.csv", Table(100));
  TrainOnTable("train.csv", "run", {});
  const Arguments eval = {
      "eval",     "--json", "--checkpoint", Path("run"),       "--dataset",   "csv",
      "--target", "kind",   "--data",       Path("large.csv"), "--test-data", Path("train.csv")};
  const base::Json alone = base::ParseJson(TrainOk(eval));
  Ranks ranks(MusterTrainWith(eval), 2);
  EXPECT_EQ(ranks.Wait(), (std::vector<int>{0, 0})) << ranks.errors();
  const base::Json both = base::ParseJson(ranks[0].out());
  EXPECT_NEAR(both["loss"], alone["loss"].get<double>(), 1e-6);
  EXPECT_GT(alone["accuracy"], 0.9);
}

// Images were normalized by the training images that lay beside them.
TEST_F(OtherDataTest, ImagesAreNormalizedAsThoseOfTheTraining) {
  WriteIdx("own", "train", 0);
  WriteIdx("own", "t10k", 50);
  WriteIdx("other", "train", 190);
  WriteIdx("other", "t10k", 50);
  TrainOk({"--model", "mlp", "--data", Path("own"), "--batch-size", "10", "--checkpoint-dir",
           Path("run")});
  EXPECT_EQ(Predict("run", {"--data", Path("other")}), Predict("run", {}));
}

// A checkpoint says, to Python as well, how to read data for its model.
TEST_F(OtherDataTest, TheCheckpointHoldsMeanAndDeviation) {
  dir_.Write("train.csv", "x,kind,y\n1,red,5\n3,blue,5\n5,red,5\n7,blue,5\n");
  TrainOk({"--dataset", "csv", "--data", Path("train.csv"), "--test-data", Path("train.csv"),
           "--target", "kind", "--batch-size", "2", "--checkpoint-dir", Path("run")});
  const auto checkpoint = ReadTorchFile(Path("run/step-000000000002.pt"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const Value* const normalization = checkpoint->Find("normalization");
  ASSERT_NE(normalization, nullptr);
  EXPECT_EQ(*(*normalization->Find("mean")->list())[0].floating(), 4);
  EXPECT_EQ(*(*normalization->Find("mean")->list())[1].floating(), 5);
  EXPECT_DOUBLE_EQ(*(*normalization->Find("deviation")->list())[0].floating(), std::sqrt(5.0));
  EXPECT_EQ(*(*normalization->Find("deviation")->list())[1].floating(), 1);
  EXPECT_EQ(*(*normalization->Find("columns")->list())[1].string(), "y");
}

}  // namespace
}  // namespace muster::trainer

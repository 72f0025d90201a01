// eval and predict on other data than the training's: it must be read as in the training.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "test/support/temp_dir.h"
#include "test/trainer/app/command_words.h"
#include "test/trainer/encoded.h"
#include "test/trainer/ranks.h"
#include "trainer/io/torch_file.h"

namespace muster::trainer {
namespace {

namespace fs = std::filesystem;

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

  // Both files of a split in MNIST's format: 20 images, each of a single grey from `darkest` on.
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

  // Trains on the table `train`, with one rank or more, and writes the checkpoint to `to`.
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

// A table in other units, or from another day, was standardized by itself, so that its rows looked
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

// Ranks that do not read the checkpoint standardize like the one that does.
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

// Images were normalized by the training images next to them.
TEST_F(OtherDataTest, ImagesAreNormalizedAsThoseOfTheTraining) {
  WriteIdx("own", "train", 0);
  WriteIdx("own", "t10k", 50);
  WriteIdx("other", "train", 190);
  WriteIdx("other", "t10k", 50);
  TrainOk({"--model", "mlp", "--data", Path("own"), "--batch-size", "10", "--checkpoint-dir",
           Path("run")});
  EXPECT_EQ(Predict("run", {"--data", Path("other")}), Predict("run", {}));
}

// Classes were numbers, and the user had to know which folder or value each one was.
TEST_F(OtherDataTest, PredictSaysTheNamesOfClasses) {
  dir_.Write("train.csv", Table(1));
  TrainOnTable("train.csv", "run", {});
  const std::vector<base::Json> lines = LinesOfJson(Predict("run", {"--split", "all"}));
  ASSERT_EQ(lines.size(), 60u);
  const std::vector<std::string> names = {"large", "small"};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i]["index"], i);
    EXPECT_EQ(lines[i]["label_name"], i % 2 == 0 ? "small" : "large");
    for (const base::Json& entry : lines[i]["top"]) {
      EXPECT_EQ(entry["name"], names[entry["class"].get<std::size_t>()]);
    }
  }
  const auto held_out = LinesOfJson(Predict("run", {}));
  const auto learned = LinesOfJson(Predict("run", {"--split", "train"}));
  EXPECT_EQ(held_out.size(), 6u);
  EXPECT_EQ(learned.size(), 54u);
}

// A file with only one of the classes was refused, and one with other classes was scored against
// wrong ones.
TEST_F(OtherDataTest, ClassesOfOtherDataAreFoundByTheirNames) {
  dir_.Write("train.csv", Table(1));
  TrainOnTable("train.csv", "run", {});
  dir_.Write("small.csv", "x,kind,y\n11,small,7\n12,small,8\n");
  const Arguments eval = {"eval", "--json", "--checkpoint", Path("run"), "--data"};
  const base::Json measured = base::ParseJson(TrainOk(eval + Arguments{Path("small.csv")}));
  EXPECT_EQ(measured["accuracy"], 1);

  dir_.Write("new.csv", "x,kind,y\n11,huge,7\n12,small,8\n31,large,3\n");
  Ranks refused(MusterTrainWith(eval + Arguments{Path("new.csv")}), 1);
  EXPECT_EQ(refused.Wait(), std::vector<int>{2});
  EXPECT_NE(refused.errors().find("the model does not know the class 'huge', only large, small"),
            std::string::npos)
      << refused.errors();
  const auto lines = LinesOfJson(Predict("run", {"--data", Path("new.csv"), "--split", "all"}));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(lines[0]["label"].is_null()) << lines[0];
  EXPECT_EQ(lines[0]["label_name"], "huge");
  EXPECT_EQ(lines[0]["top"].size(), 2u);
  EXPECT_EQ(lines[1]["label"], 1);
  EXPECT_EQ(lines[2]["label"], 0);
  EXPECT_EQ(lines[2]["top"][0]["name"], "large");
}

// Data to be predicted has no classes yet, and a file without them was refused.
TEST_F(OtherDataTest, ATableWithoutClassesIsPredicted) {
  dir_.Write("train.csv", Table(1));
  TrainOnTable("train.csv", "run", {"--checkpoint-format", "shards"});
  TrainOk({"consolidate", Path("run"), "--out", Path("one.pt")});
  dir_.Write("new.csv", "y,x\n7,11\n3,31\n");
  const std::string out = Predict("run", {"--data", Path("new.csv")});
  const auto lines = LinesOfJson(out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0]["label"].is_null());
  EXPECT_TRUE(lines[0]["label_name"].is_null());
  EXPECT_EQ(lines[0]["top"][0]["name"], "small");
  EXPECT_EQ(lines[1]["top"][0]["name"], "large");
  EXPECT_EQ(Predict("one.pt", {"--data", Path("new.csv")}), out);
}

// The same for folders, whose names are the classes.
TEST_F(OtherDataTest, FoldersAreClassesByTheirNames) {
  for (const std::string image : {"old/bright", "old/dark", "old/grey", "new/dark", "new/pink"}) {
    fs::create_directories(Path(image));
    const auto level = static_cast<std::uint8_t>(image.ends_with("dark") ? 10 : 200);
    const std::string file = EncodePng(PlainImage(8, 8, level, level, level));
    for (const char* name : {"/1.png", "/2.png"}) dir_.Write(image + name, file);
  }
  TrainOk({"--dataset", "folder", "--data", Path("old"), "--image-size", "8", "--model", "mlp",
           "--batch-size", "2", "--epochs", "3", "--checkpoint-dir", Path("run")});
  const auto lines = LinesOfJson(Predict("run", {"--data", Path("new"), "--split", "all"}));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0]["label"], 1);
  EXPECT_EQ(lines[0]["label_name"], "dark");
  EXPECT_TRUE(lines[2]["label"].is_null());
  EXPECT_EQ(lines[2]["label_name"], "pink");
  EXPECT_EQ(lines[2]["top"].size(), 3u);
}

// A checkpoint also tells Python how to read data for its model.
TEST_F(OtherDataTest, TheCheckpointHoldsMeanDeviationAndClasses) {
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
  ASSERT_NE(checkpoint->Find("classes"), nullptr);
  EXPECT_EQ(*(*checkpoint->Find("classes")->list())[1].string(), "red");
}

}  // namespace
}  // namespace muster::trainer

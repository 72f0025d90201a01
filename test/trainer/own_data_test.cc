// Training on users' own data: folders of images and CSV files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "test/support/temp_dir.h"
#include "test/trainer/encoded.h"
#include "test/trainer/program.h"

namespace muster::trainer {
namespace {

constexpr std::chrono::seconds kOwnDataDeadline(120);

// A disc or a square of any color, anywhere, on a background of noise.
RgbImage Shape(bool disc, std::mt19937& random) {
  RgbImage image{.height = 48, .width = 60, .pixels = {}};
  const int radius = 8 + static_cast<int>(random() % 8);
  const int row = 18 + static_cast<int>(random() % 12);
  const int column = 22 + static_cast<int>(random() % 16);
  const std::uint8_t color[3] = {static_cast<std::uint8_t>(160 + random() % 96),
                                 static_cast<std::uint8_t>(160 + random() % 96),
                                 static_cast<std::uint8_t>(160 + random() % 96)};
  for (int y = 0; y < 48; ++y) {
    for (int x = 0; x < 60; ++x) {
      const int down = std::abs(y - row);
      const int across = std::abs(x - column);
      const bool inside = disc ? down * down + across * across <= radius * radius
                               : std::max(down, across) <= radius && (down + across) % 4 < 2;
      for (const std::uint8_t level : color) {
        image.pixels.push_back(inside ? level : static_cast<std::uint8_t>(random() % 60));
      }
    }
  }
  return image;
}

class OwnDataTest : public testing::Test {
 protected:
  // `count` images of each class below `folder`, PNG and JPEG in turn.
  void WriteShapes(const std::string& folder, int count, unsigned seed) {
    std::mt19937 random(seed);
    for (const char* name : {"disc", "square"}) {
      const std::string below = folder + "/" + name;
      std::filesystem::create_directories(dir_.Path(below));
      for (int i = 0; i < count; ++i) {
        const RgbImage image = Shape(name == std::string("disc"), random);
        const std::string path = below + "/" + std::to_string(i);
        if (i % 2 == 0) dir_.Write(path + ".png", EncodePng(image));
        if (i % 2 == 1) dir_.Write(path + ".jpg", EncodeJpeg(image));
      }
    }
  }

  // Three kinds of flowers, whose four measures overlap a little, sorted by kind.
  std::string Flowers() {
    std::mt19937 random(4);
    std::normal_distribution<double> spread(0, .35);
    const double centers[3][4] = {{5.0, 3.4, 1.5, 0.2}, {5.9, 2.8, 4.3, 1.3}, {6.6, 3.0, 5.6, 2.0}};
    const char* names[3] = {"setosa", "\"versi, color\"", "virginica"};
    std::string text = "sepal length,sepal width,petal length,petal width,kind\r\n";
    for (int kind = 0; kind < 3; ++kind) {
      for (int i = 0; i < 60; ++i) {
        for (const double center : centers[kind]) {
          text += std::to_string(center + spread(random)) + ",";
        }
        text += std::string(names[kind]) + "\r\n";
      }
    }
    return dir_.Write("flowers.csv", text);
  }

  std::vector<double> Losses(const std::string& log) {
    std::ifstream lines(log);
    std::vector<double> losses;
    std::int64_t step = 0;
    double loss = 0;
    while (lines >> step >> loss) losses.push_back(loss);
    return losses;
  }

  // Of the summary.
  double TestAccuracy(const std::string& output) {
    const std::size_t at = output.rfind("test accuracy");
    EXPECT_NE(at, std::string::npos) << output;
    return at == std::string::npos ? 0 : std::stod(output.substr(at + 13));
  }

  // Trains as one rank and as two, which must give the same losses. Returns rank 0's output of the
  // two.
  std::string TrainAsOneAndAsTwo(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), MusterTrain());
    arguments.insert(arguments.end(),
                     {"--dtype", "float64", "--checkpoint-dir", "", "--loss-log", ""});
    std::vector<std::vector<double>> losses;
    std::string said;
    for (const int ranks : {1, 2}) {
      arguments[arguments.size() - 3] = dir_.Path("run" + std::to_string(ranks));
      arguments.back() = dir_.Path("losses" + std::to_string(ranks));
      said = RunRanks(arguments, ranks, kOwnDataDeadline)[0].output();
      losses.push_back(Losses(arguments.back()));
    }
    EXPECT_FALSE(losses[0].empty());
    EXPECT_EQ(losses[0].size(), losses[1].size());
    for (std::size_t i = 0; i < std::min(losses[0].size(), losses[1].size()); ++i) {
      EXPECT_NEAR(losses[0][i], losses[1][i], 1e-6 * losses[0][i]) << "step " << i + 1;
    }
    return said;
  }

  const test::TempDir dir_;
};

TEST_F(OwnDataTest, ACnnLearnsAFolderOfImagesOnAnyNumberOfRanks) {
  WriteShapes("train", 60, /*seed=*/1);
  WriteShapes("val", 20, /*seed=*/2);
  const std::string said =
      TrainAsOneAndAsTwo({"--dataset", "folder", "--data", dir_.path(), "--image-size", "24",
                          "--epochs", "12", "--batch-size", "24", "--lr", "0.02", "--flip",
                          "--crop-padding", "1", "--loader-threads", "2"});
  EXPECT_NE(said.find("folder (" + dir_.path() + ")"), std::string::npos) << said;
  EXPECT_GT(TestAccuracy(said), 90) << said;
}

TEST_F(OwnDataTest, AnMlpLearnsACsvFileOnAnyNumberOfRanks) {
  const std::string said =
      TrainAsOneAndAsTwo({"--dataset", "csv", "--data", Flowers(), "--target", "kind", "--epochs",
                          "20", "--batch-size", "18", "--seed", "3"});
  EXPECT_GT(TestAccuracy(said), 85) << said;
  // The checkpoint knows its data, and which rows were held out.
  Program eval({MusterTrain(), "eval", "--checkpoint", dir_.Path("run2")}, {});
  EXPECT_EQ(eval.Wait(kOwnDataDeadline), 0) << eval.errors();
  EXPECT_NE(eval.output().find("18 test rows"), std::string::npos) << eval.output();
  EXPECT_EQ(TestAccuracy(eval.output()), TestAccuracy(said));
}

TEST_F(OwnDataTest, AMistakeInTheDataIsOneSentence) {
  WriteShapes("photos", 6, /*seed=*/3);
  const std::string damaged = dir_.Write("photos/square/5.jpg", "\xff\xd8\xff\xe0 and no more");
  const std::string table = dir_.Write("x.csv", "a,kind\n1,x\n2,y\nmany,x\n");
  struct Mistake {
    std::vector<std::string> arguments;
    std::string sentence;
  };
  for (const Mistake& mistake : std::vector<Mistake>{
           {{"--dataset", "folder", "--data", dir_.Path("photos"), "--batch-size", "4"},
            "read " + damaged + ": truncated or damaged: "},
           {{"--dataset", "folder"}, "--dataset folder needs --data"},
           {{"--dataset", "csv", "--data", table, "--target", "kind"},
            "read " + table + ": line 4, column 'a': 'many' is not a finite number"},
           {{"--dataset", "csv", "--data", table}, "--dataset csv needs --target"},
           {{"--dataset", "generated", "--target", "kind"}, "--target is for --dataset csv"},
           {{"--dataset", "csv", "--data", Flowers(), "--target", "kind", "--model", "cnn"},
            "make model cnn: it takes images, and the data is a table"},
       }) {
    std::vector<std::string> arguments = {MusterTrain()};
    arguments.insert(arguments.end(), mistake.arguments.begin(), mistake.arguments.end());
    Program program(arguments, {});
    EXPECT_EQ(program.Wait(kOwnDataDeadline), 2);
    EXPECT_NE(program.errors().find(mistake.sentence), std::string::npos) << program.errors();
    const std::string errors = program.errors();
    EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << errors;
  }
}

}  // namespace
}  // namespace muster::trainer

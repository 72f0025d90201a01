#include "trainer/data/samples/image_sets.h"

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace muster::trainer {
namespace {

// A record with all red pixels `label` + 1, all green ones + 2, all blue ones + 3.
std::string Record(int label) {
  std::string record(1, static_cast<char>(label));
  for (int channel = 1; channel <= 3; ++channel) {
    record += std::string(1024, static_cast<char>(label + channel));
  }
  return record;
}

class CifarTest : public testing::Test {
 protected:
  void WriteGood(const std::string& folder = "") {
    for (int i = 1; i <= 5; ++i) {
      dir_.Write(folder + "data_batch_" + std::to_string(i) + ".bin", Record(i) + Record(0));
    }
    dir_.Write(folder + "test_batch.bin", Record(9));
  }

  std::string Refusal() {
    const auto images = ReadCifar10(dir_.path());
    EXPECT_EQ(images.status().code(), absl::StatusCode::kInvalidArgument) << images.status();
    return std::string(images.status().message());
  }

  test::TempDir dir_;
};

TEST_F(CifarTest, FilesAreReadInOrder) {
  WriteGood();
  const auto images = ReadCifar10(dir_.path());
  ASSERT_TRUE(images.ok()) << images.status();
  EXPECT_EQ(images->train.labels, (std::vector<std::uint8_t>{1, 0, 2, 0, 3, 0, 4, 0, 5, 0}));
  EXPECT_EQ(images->test.labels, (std::vector<std::uint8_t>{9}));
  EXPECT_EQ(images->train.channels, 3);
  EXPECT_EQ(images->train.height, 32);
  EXPECT_EQ(images->train.width, 32);
  ASSERT_EQ(images->train.pixels.size(), 10u * 3072);
  // The third image: label 2, so 3, 4 and 5.
  EXPECT_EQ(images->train.pixels[2 * 3072], 3);
  EXPECT_EQ(images->train.pixels[2 * 3072 + 1023], 3);
  EXPECT_EQ(images->train.pixels[2 * 3072 + 1024], 4);
  EXPECT_EQ(images->train.pixels[2 * 3072 + 3071], 5);
}

TEST_F(CifarTest, FolderOfTheArchiveIsFound) {
  std::filesystem::create_directory(dir_.Path("cifar-10-batches-bin"));
  WriteGood("cifar-10-batches-bin/");
  EXPECT_TRUE(ReadCifar10(dir_.path()).ok());
}

TEST_F(CifarTest, MissingFileIsNamed) {
  WriteGood();
  std::filesystem::remove(dir_.Path("data_batch_4.bin"));
  EXPECT_EQ(Refusal(), "read " + dir_.Path("data_batch_4.bin") +
                           ": no such file, and CIFAR-10's binary form has it");
}

TEST_F(CifarTest, FileThatWasCutShortIsRefused) {
  WriteGood();
  dir_.Write("test_batch.bin", Record(1).substr(1));
  EXPECT_EQ(Refusal(), "read " + dir_.Path("test_batch.bin") +
                           ": not CIFAR-10's binary form: 3072 bytes are not records of 3073 "
                           "bytes");
  dir_.Write("test_batch.bin", "");
  EXPECT_NE(Refusal().find("0 bytes are not records"), std::string::npos);
}

// CIFAR-100's records have two label bytes; its files have the wrong size or impossible labels.
TEST_F(CifarTest, LabelAboveNineIsRefused) {
  WriteGood();
  dir_.Write("data_batch_2.bin", Record(3) + Record(10));
  EXPECT_EQ(Refusal(), "read " + dir_.Path("data_batch_2.bin") +
                           ": not CIFAR-10's binary form: record 1 has label 10, above 9");
}

TEST_F(CifarTest, DirectoriesAreNotFilesNorFilesDirectories) {
  EXPECT_EQ(ReadCifar10(dir_.Path("none")).status().message(),
            "read data from " + dir_.Path("none") + ": no such directory");
  std::filesystem::create_directories(dir_.Path("data_batch_1.bin"));
  EXPECT_EQ(Refusal(), "read " + dir_.Path("data_batch_1.bin") + ": not a file");
}

}  // namespace
}  // namespace muster::trainer

#include "trainer/data/samples/image_sets.h"

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace muster::trainer {
namespace {

// An IDX file of unsigned bytes, all of them `byte`.
std::string Idx(const std::vector<int>& dims, char byte) {
  std::string file = std::string("\0\0\x08", 3) + static_cast<char>(dims.size());
  std::size_t size = 1;
  for (const int dim : dims) {
    for (const int shift : {24, 16, 8, 0}) file += static_cast<char>(dim >> shift);
    size *= static_cast<std::size_t>(dim);
  }
  return file + std::string(size, byte);
}

class IdxImagesTest : public testing::Test {
 protected:
  void Write(const std::string& images, const std::string& labels) {
    dir_.Write("train-images-idx3-ubyte", images);
    dir_.Write("train-labels-idx1-ubyte", labels);
  }

  std::string Refusal() {
    const auto images = ReadIdxImages(dir_.path(), "train");
    EXPECT_EQ(images.status().code(), absl::StatusCode::kInvalidArgument) << images.status();
    return std::string(images.status().message());
  }

  test::TempDir dir_;
};

TEST_F(IdxImagesTest, ImagesAndLabelsAreReadTogether) {
  Write(Idx({3, 28, 28}, 7), Idx({3}, 9));
  const auto images = ReadIdxImages(dir_.path(), "train");
  ASSERT_TRUE(images.ok()) << images.status();
  EXPECT_EQ(images->count(), 3);
  EXPECT_EQ(images->height, 28);
  EXPECT_EQ(images->pixels.size(), 3u * 784);
  EXPECT_EQ(images->labels, (std::vector<std::uint8_t>{9, 9, 9}));
}

TEST_F(IdxImagesTest, FilesThatDoNotFitTogetherAreRefused) {
  Write(Idx({3, 28, 28}, 0), Idx({2}, 0));
  EXPECT_EQ(Refusal(), "read data from " + dir_.path() +
                           ": train-labels-idx1-ubyte does not hold one label for each of the 3 "
                           "images");
  Write(Idx({3, 28, 27}, 0), Idx({3}, 0));
  EXPECT_EQ(Refusal(), "read data from " + dir_.path() +
                           ": train-images-idx3-ubyte does not hold images of 28 x 28 pixels");
  // The two files swapped.
  Write(Idx({3}, 0), Idx({3, 28, 28}, 0));
  EXPECT_NE(Refusal().find("does not hold images"), std::string::npos);
}

TEST_F(IdxImagesTest, LabelAboveNineAndNoImagesAreRefused) {
  Write(Idx({3, 28, 28}, 0), Idx({3}, 10));
  EXPECT_NE(Refusal().find("has label 10, above 9"), std::string::npos);
  Write(Idx({0, 28, 28}, 0), Idx({0}, 0));
  EXPECT_NE(Refusal().find("does not hold images"), std::string::npos);
}

}  // namespace
}  // namespace muster::trainer

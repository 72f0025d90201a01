#include "trainer/data/samples/image_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "test/support/temp_dir.h"

namespace muster::trainer {
namespace {

class ImageFolderTest : public testing::Test {
 protected:
  // Creates a file named `name`, with its folders.
  void Add(const std::string& name) {
    std::filesystem::create_directories(std::filesystem::path(dir_.Path(name)).parent_path());
    dir_.Write(name, "x");
  }

  absl::StatusOr<ImageFolder> List(std::uint64_t seed = 0, const std::string& test = "") {
    DataOptions options = {.paths = {dir_.path()},
                           .seed = seed,
                           .test_share = 0.25,
                           .known = {.classes = known_},
                           .labels_needed = labels_needed_};
    if (!test.empty()) options.test_paths = {test};
    return ListImageFolder(options);
  }

  std::string Refusal(const std::string& test = "") {
    const auto folder = List(0, test);
    EXPECT_EQ(folder.status().code(), absl::StatusCode::kInvalidArgument) << folder.status();
    return std::string(folder.status().message());
  }

  // "cat:a.jpg dog:b.png": the class and the path below the class's folder of each.
  std::string Names(const std::vector<ImageFile>& files, const ImageFolder& folder) {
    std::string names;
    for (const ImageFile& file : files) {
      const std::string& name = folder.classes[static_cast<std::size_t>(file.label)];
      const std::size_t at = file.path.find("/" + name + "/");
      EXPECT_NE(at, std::string::npos) << file.path;
      names += (names.empty() ? "" : " ") + name + ":" + file.path.substr(at + name.size() + 2);
    }
    return names;
  }

  const test::TempDir dir_;
  std::vector<std::string> known_;  // to the model
  bool labels_needed_ = true;
};

TEST_F(ImageFolderTest, TrainAndValAreTheSplits) {
  Add("train/dog/b.png");
  Add("train/cat/z.JPEG");
  Add("train/cat/a.jpg");
  Add("train/cat/images/deep.PNG");
  Add("train/cat/notes.txt");
  Add("train/cat/.hidden.jpg");
  Add("train/.cache/c.jpg");
  Add("val/dog/v.jpg");
  Add("test/cat/not-this.jpg");
  const auto folder = List();
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(folder->classes, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(Names(folder->train, *folder), "cat:a.jpg cat:images/deep.PNG cat:z.JPEG dog:b.png");
  EXPECT_EQ(Names(folder->test, *folder), "dog:v.jpg");
  const auto other = List(0, dir_.Path("test"));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(Names(other->test, *other), "cat:not-this.jpg");
  std::filesystem::remove_all(dir_.Path("val"));
  EXPECT_EQ(Names(List()->test, *folder), "cat:not-this.jpg");
}

TEST_F(ImageFolderTest, WithoutSplitsTheSeedChoosesAShare) {
  for (int i = 10; i < 50; ++i) Add((i % 2 == 0 ? "a/" : "b/") + std::to_string(i) + ".jpg");
  const auto folder = List(5);
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(folder->train.size(), 30u);
  EXPECT_EQ(folder->test.size(), 10u);
  for (const ImageFile& test : folder->test) {
    for (const ImageFile& train : folder->train) EXPECT_NE(test.path, train.path);
  }
  EXPECT_EQ(Names(List(5)->test, *folder), Names(folder->test, *folder));
  EXPECT_NE(Names(List(6)->test, *folder), Names(folder->test, *folder));
}

// In a folder with fewer classes, or with others, each class had another number than in the
// training.
TEST_F(ImageFolderTest, ClassesKeepTheNumbersOfTheTraining) {
  known_ = {"cat", "cow", "dog"};
  Add("train/dog/a.jpg");
  Add("val/cat/b.jpg");
  const auto folder = List();
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(folder->classes, known_);
  ASSERT_EQ(folder->train.size(), 1u);
  EXPECT_EQ(folder->train[0].label, 2);
  ASSERT_EQ(folder->test.size(), 1u);
  EXPECT_EQ(folder->test[0].label, 0);
  Add("train/ant/c.jpg");
  Add("val/bee/d.jpg");
  EXPECT_EQ(Refusal(), "read " + dir_.Path("train") +
                           ": the model does not know the class 'ant', only cat, cow, dog; leave "
                           "its folder out");
  labels_needed_ = false;
  const auto asked = List();
  ASSERT_TRUE(asked.ok()) << asked.status();
  EXPECT_EQ(asked->classes, (std::vector<std::string>{"cat", "cow", "dog", "ant", "bee"}));
  EXPECT_EQ(Names(asked->train, *asked), "ant:c.jpg dog:a.jpg");
  EXPECT_EQ(Names(asked->test, *asked), "bee:d.jpg cat:b.jpg");
}

TEST_F(ImageFolderTest, AnUndividedFolderHoldsNoImageOut) {
  Add("a/1.jpg");
  Add("b/2.jpg");
  const auto folder = ListImageFolder({.paths = {dir_.path()}, .undivided = true});
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(Names(folder->train, *folder), "a:1.jpg b:2.jpg");
  EXPECT_TRUE(folder->test.empty());
}

TEST_F(ImageFolderTest, WhatCannotBeTrainedOnIsRefusedInASentence) {
  EXPECT_EQ(ListImageFolder({.paths = {"/nonexistent"}}).status().message(),
            "read data from /nonexistent: no such directory");
  EXPECT_EQ(Refusal(), "read " + dir_.path() +
                           ": it has no folders, and a folder for each of two or more classes is "
                           "needed");
  Add("train/cat/a.jpg");
  EXPECT_EQ(Refusal(), "read " + dir_.Path("train") +
                           ": it has one folder, and a folder for each of two or more classes is "
                           "needed");
  Add("train/dog/a.gif");
  EXPECT_EQ(Refusal(), "read " + dir_.Path("train/dog") +
                           ": a class without an image; there is no .jpg, .jpeg or .png file in "
                           "it");
  Add("train/dog/a.png");
  Add("val/bird/a.png");
  EXPECT_EQ(Refusal(),
            "read " + dir_.Path("val/bird") + ": a class that the images to train on do not have");
  EXPECT_EQ(Refusal(dir_.Path("train/dog")),
            "read " + dir_.Path("train/dog") + ": it has no folders, and each class is one");
}

}  // namespace
}  // namespace muster::trainer

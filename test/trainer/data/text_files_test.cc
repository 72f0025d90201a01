// Texts before they become a data set: mapped from a file, or generated.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <set>
#include <utility>

#include "test/support/temp_dir.h"
#include "trainer/data/samples/data_files.h"
#include "trainer/data/samples/token_files.h"

namespace muster::trainer {
namespace {

TEST(MappedFileTest, HoldsTheBytesOfTheFile) {
  const test::TempDir dir;
  std::string bytes;
  for (int i = 0; i < 10000; ++i) bytes += static_cast<char>(i % 251);
  const auto file = MappedFile::Open(dir.Write("text", bytes));
  ASSERT_TRUE(file.ok()) << file.status();
  // Still mapped after the name is gone.
  std::filesystem::remove(dir.Path("text"));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>((*file)->bytes()),
                        static_cast<std::size_t>((*file)->size())),
            bytes);
}

TEST(MappedFileTest, WhatIsNoFileWithSomethingInItIsRefused) {
  const test::TempDir dir;
  const auto refusal = [](const std::string& path) {
    const auto file = MappedFile::Open(path);
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(file.status().message());
  };
  EXPECT_EQ(refusal(dir.Path("none")), "read " + dir.Path("none") + ": No such file or directory");
  EXPECT_EQ(refusal(dir.path()), "read " + dir.path() + ": is a directory");
  const std::string empty = dir.Write("empty", "");
  EXPECT_EQ(refusal(empty), "read " + empty + ": is empty");
  // Opening a pipe without a writer would otherwise hang.
  ASSERT_EQ(mkfifo(dir.Path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(refusal(dir.Path("pipe")), "read " + dir.Path("pipe") + ": not a regular file");
}

TEST(GeneratedTextTest, IsTheSameEverywhere) {
  const std::string text = GenerateText(100000, /*seed=*/1);
  EXPECT_EQ(text.size(), 100000u);
  EXPECT_EQ(GenerateText(100000, /*seed=*/1), text);
  EXPECT_NE(GenerateText(100000, /*seed=*/2), text);
  // FNV-1a of the bytes, so that a change by a compiler or library is noticed.
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : text) {
    hash = (hash ^ static_cast<std::uint8_t>(byte)) * 0x100000001b3;
  }
  EXPECT_EQ(hash, 0xe86ebbc3ccb994f1u);
}

TEST(GeneratedTextTest, IsMadeOfSentencesOfTheSameWords) {
  const auto words = [](std::uint64_t seed) {
    std::set<std::string> found;
    std::string word;
    for (const char letter : GenerateText(100000, seed)) {
      if (letter >= 'a' && letter <= 'z') {
        word += letter;
      } else if (letter >= 'A' && letter <= 'Z') {
        word += static_cast<char>(letter - 'A' + 'a');
      } else {
        EXPECT_TRUE(letter == ' ' || letter == '.' || letter == '\n') << int{letter};
        if (!word.empty()) found.insert(std::exchange(word, ""));
      }
    }
    return found;
  };
  EXPECT_GT(words(1).size(), 100u);
  EXPECT_EQ(words(1), words(2));
}

}  // namespace
}  // namespace muster::trainer

#include "trainer/data/samples/data_files.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "test/support/temp_dir.h"

namespace muster::trainer {
namespace {

using Files = std::vector<std::string>;

TEST(DataFilesTest, ADirectoryStandsForItsFiles) {
  const test::TempDir dir;
  const std::string b = dir.Write("b.txt", "b");
  const std::string a = dir.Write("a.txt", "a");
  const std::string c = dir.Write("c.md", "c");
  dir.Write(".hidden.txt", "x");
  dir.Write("empty.txt", "");
  std::filesystem::create_directory(dir.Path("d.txt"));
  EXPECT_EQ(*ListFiles({dir.path()}, ""), (Files{a, b, c}));
  EXPECT_EQ(*ListFiles({dir.path()}, ".txt"), (Files{a, b}));
  EXPECT_EQ(*ListFiles({c, dir.path(), "none"}, ".txt"), (Files{c, a, b, "none"}));
  EXPECT_EQ(ListFiles({dir.Path("d.txt")}, "").status().message(),
            "read " + dir.Path("d.txt") + ": the directory has no file with something in it");
  EXPECT_EQ(ListFiles({dir.path()}, ".bin").status().message(),
            "read " + dir.path() + ": the directory has no file *.bin with something in it");
}

TEST(DataFilesTest, TokensLieAsNanoGptLaysThem) {
  const test::TempDir dir;
  const std::string train = dir.Write("train.bin", "ab");
  const std::string other = dir.Write("other.bin", "ab");
  EXPECT_EQ(ListTokenFiles({train})->test, Files{});
  const std::string test = dir.Write("val.bin", "ab");
  for (const std::string& path : {dir.path(), train}) {
    const auto files = ListTokenFiles({path});
    ASSERT_TRUE(files.ok()) << files.status();
    EXPECT_EQ(files->train, Files{train});
    EXPECT_EQ(files->test, Files{test});
  }
  EXPECT_EQ(ListTokenFiles({other})->test, Files{});
  EXPECT_EQ(ListTokenFiles({other, train})->train, (Files{other, train}));
}

TEST(DataFilesTest, PartsOfTokensAreTakenInTheOrderOfTheirNames) {
  const test::TempDir dir;
  const std::string second = dir.Write("part_02.bin", "ab");
  const std::string first = dir.Write("part_01.bin", "ab");
  dir.Write("meta.json", "{}");
  const auto files = ListTokenFiles({dir.path()});
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->train, (Files{first, second}));
  EXPECT_EQ(files->test, Files{});
}

}  // namespace
}  // namespace muster::trainer

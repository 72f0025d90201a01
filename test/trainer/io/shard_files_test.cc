#include "trainer/io/formats/shard_index.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace muster::trainer {
namespace {

namespace fs = std::filesystem;

class ShardFilesTest : public testing::Test {
 protected:
  ShardFilesTest() {
    for (const char* name : {"index.json", "index.json.tmp", "shard-00001-of-00002.safetensors",
                             "shard-00002-of-00002.safetensors", "shard-00003-of-00003.safetensors",
                             "shard-00001-of-00002.safetensors.tmp"}) {
      std::ofstream(dir_.Path(name)) << "x";
    }
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir_.path())) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  const test::TempDir dir_;
};

TEST_F(ShardFilesTest, OnlyTheNamesThatAreGivenAreTaken) {
  EXPECT_EQ(ShardName(0, 4), "shard-00001-of-00004.safetensors");
  EXPECT_EQ(ShardName(kMostShards - 1, kMostShards), "shard-99999-of-99999.safetensors");
  for (const int shard : {0, 3}) EXPECT_EQ(ShardOf(ShardName(shard, 4), 4), shard);
  for (const char* name :
       {"shard-00000-of-00004.safetensors", "shard-00005-of-00004.safetensors",
        "shard-00001-of-00003.safetensors", "../ard-00001-of-00004.safetensors",
        "shard-00001-of-00004.safetensors.tmp", "shard-1-of-4.safetensors", "", "index.json",
        "shard-0000a-of-00004.safetensors", "x/shard-00001-of-00004.safetensors"}) {
    EXPECT_EQ(ShardOf(name, 4), -1) << name;
  }
}

TEST_F(ShardFilesTest, WhatTheIndexDoesNotNameGoes) {
  std::ofstream(dir_.Path("notes")) << "mine";
  RemoveOtherShards(dir_.path(), 2);
  EXPECT_EQ(Files(),
            (std::vector<std::string>{"index.json", "notes", "shard-00001-of-00002.safetensors",
                                      "shard-00002-of-00002.safetensors"}));
  EXPECT_TRUE(HasShardIndex(dir_.path()));
}

TEST_F(ShardFilesTest, TheDirectoryGoesUnlessSomebodyElsesFilesAreInIt) {
  std::ofstream(dir_.Path("notes")) << "mine";
  RemoveShards(dir_.path());
  EXPECT_EQ(Files(), std::vector<std::string>{"notes"});
  EXPECT_FALSE(HasShardIndex(dir_.path()));
  fs::create_directory(dir_.Path("inner"));
  std::ofstream(dir_.Path("inner/index.json")) << "x";
  RemoveShards(dir_.Path("inner"));
  EXPECT_FALSE(fs::exists(dir_.Path("inner")));
}

}  // namespace
}  // namespace muster::trainer

#include "trainer/io/formats/shard_index.h"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"

#include "trainer/io/formats/files.h"

namespace muster::trainer {
namespace {

using nlohmann::json;

constexpr char kFirst[] = "shard-00001-of-00002.safetensors";
constexpr char kSecond[] = "shard-00002-of-00002.safetensors";

ShardIndex Small() {
  ShardIndex index;
  index.files = {{100, 0xabc}, {200, 0xffffffff}};
  index.shard_of = {{"a", 0}, {"b", 1}};
  index.tensor_bytes = 12;
  NamedTree::Dict tree;
  tree.Set("model", NamedTree::List{NamedTree(TensorName{"b"}), NamedTree(TensorName{"a"})});
  tree.Set("step", 7);
  index.tree = NamedTree(tree);
  return index;
}

std::string ShardIndexErrorOf(const std::string& text) {
  const auto read = ReadShardIndex(text);
  return read.ok() ? "none" : std::string(read.status().message());
}

// The error for the index after `change`, with its checksum corrected.
template <typename Change>
std::string ErrorAfter(const Change& change) {
  json all = json::parse(ShardIndexText(Small()));
  all.erase("crc32");
  change(all);
  FileFacts facts;
  facts.Add(all.dump());
  all["crc32"] = absl::StrFormat("%08x", facts.crc32);
  return ShardIndexErrorOf(all.dump(4));
}

TEST(ShardIndexTest, WhatIsWrittenIsRead) {
  const ShardIndex index = Small();
  const auto read = ReadShardIndex(ShardIndexText(index));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->files, index.files);
  EXPECT_EQ(read->shard_of, index.shard_of);
  EXPECT_EQ(read->tensor_bytes, 12u);
  EXPECT_EQ(read->tree.GetInt("step").value(), 7);
  EXPECT_EQ((*read->tree.Find("model")->list())[0].tensor()->name, "b");
}

// https://huggingface.co/docs/safetensors: readers of many files want these two members.
TEST(ShardIndexTest, ItHasTheMembersOfAnIndexOfHuggingFace) {
  const json all = json::parse(ShardIndexText(Small()));
  EXPECT_EQ(all["metadata"]["total_size"], 12);
  EXPECT_EQ(all["weight_map"], (json{{"a", kFirst}, {"b", kSecond}}));
}

TEST(ShardIndexTest, TextsThatAreNoUtf8DoNotKeepItFromBeingRead) {
  ShardIndex index = Small();
  index.tree = NamedTree("/data/\xff");
  const auto read = ReadShardIndex(ShardIndexText(index));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read->tree.string(), "/data/\xef\xbf\xbd");
}

TEST(ShardIndexTest, OneByteLessOrAnotherOneIsNoticed) {
  const std::string text = ShardIndexText(Small());
  for (std::size_t size = 0; size + 2 < text.size(); ++size) {
    EXPECT_NE(ShardIndexErrorOf(text.substr(0, size)), "none") << size;
  }
  for (std::size_t at = 0; at < text.size(); ++at) {
    // White space between members has no meaning.
    if (text[at] == ' ' || text[at] == '\n') continue;
    std::string other = text;
    other[at] = static_cast<char>(other[at] ^ 1);
    EXPECT_NE(ShardIndexErrorOf(other), "none") << at << ": " << other;
  }
}

TEST(ShardIndexTest, AnIndexThatLiesIsRefused) {
  const std::string begin = "it is damaged: ";
  EXPECT_EQ(ErrorAfter([](json&) {}), "none");
  EXPECT_EQ(ErrorAfter([](json& all) { all["files"].erase(kFirst); }),
            begin + "it names the file " + kSecond + ", which is none of 1 shard");
  const std::string outside = "../../etc/shard-00001-of-00001.safetensors";
  EXPECT_EQ(ErrorAfter([&](json& all) { all["files"][outside] = all["files"][kFirst]; }),
            begin + "it names the file " + outside + ", which is none of 3 shards");
  EXPECT_EQ(ErrorAfter([&](json& all) { all["weight_map"]["a"] = outside; }),
            begin + "a is in none of its files");
  EXPECT_EQ(ErrorAfter([](json& all) { all["weight_map"]["a"] = 1; }),
            begin + "a is in none of its files");
  EXPECT_EQ(ErrorAfter([](json& all) { all["weight_map"].erase("a"); }),
            begin + "its checkpoint has the tensor a, which is in none of its files");
  EXPECT_EQ(ErrorAfter([](json& all) { all["files"][kFirst]["bytes"] = -1; }),
            begin + "it does not say size and checksum of " + kFirst);
  EXPECT_EQ(ErrorAfter([](json& all) { all["files"][kFirst]["crc32"] = "none"; }),
            begin + "it does not say size and checksum of " + kFirst);
  EXPECT_EQ(ErrorAfter([](json& all) { all.erase("files"); }),
            begin + "it has no list of its files");
  EXPECT_EQ(ErrorAfter([](json& all) { all["files"] = json::array({1}); }),
            begin + "it has no list of its files");
  EXPECT_EQ(ErrorAfter([](json& all) { all.erase("weight_map"); }), begin + "it has no weight_map");
  EXPECT_EQ(ErrorAfter([](json& all) { all["metadata"].erase("total_size"); }),
            begin + "it has no total_size");
  EXPECT_EQ(ErrorAfter([](json& all) {
              all["checkpoint"] = {{"set", 1}};
            }),
            begin + "its checkpoint has a \"set\" that cannot be understood");
}

TEST(ShardIndexTest, OtherFilesAreToldApart) {
  EXPECT_EQ(ShardIndexErrorOf(
                R"({"metadata": {"total_size": 4}, "weight_map": {"a": "model.safetensors"}})"),
            "it is not the index of a checkpoint of muster-train");
  EXPECT_EQ(ShardIndexErrorOf("[]"), "it is damaged: it is not JSON, or truncated");
  EXPECT_EQ(ShardIndexErrorOf(std::string(1 << 20, '[')),
            "it is damaged: its brackets are too deep");
  EXPECT_EQ(ErrorAfter([](json& all) { all["metadata"]["version"] = 2; }),
            "it has version 2 of this format, and only version 1 can be read here");
}

}  // namespace
}  // namespace muster::trainer

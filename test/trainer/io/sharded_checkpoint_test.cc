// Shards and their index on disk: a round trip, and one sentence for anything incomplete, both from
// disk and from the bytes that ranks send one another.
#include "trainer/io/checkpoint_file.h"

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"

#include "test/support/temp_dir.h"
#include "trainer/io/shard_plan.h"
#include "trainer/io/torch_file.h"

namespace muster::trainer {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::ReadAll;

constexpr int kShards = 3;

// One tensor of each type, and a tree with everything that a checkpoint may have.
Value Everything() {
  Dict model(/*ordered=*/true);
  int fill = 0;
  for (const auto type : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kInt,
                          at::kShort, at::kChar, at::kByte, at::kBool}) {
    model.Set(c10::toString(type), at::full({2, 3}, ++fill, type));
  }
  model.Set("scalar", at::full({}, 7, at::kLong));
  model.Set("none", at::empty({0, 5}));
  model.Set("transposed", at::rand({4, 5}).t());
  model.Set("large", at::rand({1000}));
  model.Set("tied", *model.Find("large")->tensor());
  Dict state;
  state.Set(std::int64_t{0}, at::rand({3}));
  Dict all;
  all.Set("model", model);
  all.Set("state", state);
  all.Set("betas", Value::Tuple({0.9, 0.999}));
  all.Set("step", 12);
  all.Set("rng", Value::List{at::full({5056}, 3, at::kByte)});
  return all;
}

class ShardedCheckpointTest : public testing::Test {
 protected:
  ShardedCheckpointTest() { Write(Everything()); }

  void Write(const Value& value) {
    fs::remove_all(path_);
    fs::create_directory(path_);
    ShardPlan plan = PlanShards(value, kShards).value();
    // In any order.
    for (const int shard : {2, 0, 1}) {
      const auto place = static_cast<std::size_t>(shard);
      const auto facts = WriteShard(path_, shard, kShards, plan.tensors[place]);
      ASSERT_TRUE(facts.ok()) << facts.status();
      EXPECT_EQ(facts->bytes, fs::file_size(Shard(shard)));
      plan.index.files[place] = *facts;
    }
    EXPECT_FALSE(CheckShards(path_).ok()) << "without an index there is no checkpoint";
    ASSERT_TRUE(WriteShardIndex(path_, plan.index).ok());
  }
  std::string Shard(int shard) const {
    return absl::StrFormat("%s/shard-%05d-of-00003.safetensors", path_, shard + 1);
  }
  json Index() const { return json::parse(ReadAll(path_ + "/index.json")); }
  // Replaces a shard by `bytes`, and adjusts the index.
  void Forge(int shard, const std::string& bytes) const {
    std::ofstream(Shard(shard), std::ios::binary) << bytes;
    FileFacts facts;
    facts.Add(bytes);
    json all = Index();
    all.erase("crc32");
    all["files"][fs::path(Shard(shard)).filename()] = {
        {"bytes", facts.bytes}, {"crc32", absl::StrFormat("%08x", facts.crc32)}};
    FileFacts whole;
    whole.Add(all.dump());
    all["crc32"] = absl::StrFormat("%08x", whole.crc32);
    std::ofstream(path_ + "/index.json") << all.dump();
  }
  // The same for its header, which keeps its length.
  void ForgeHeader(int shard, const std::string& from, const std::string& to) const {
    ASSERT_EQ(from.size(), to.size());
    std::string bytes = ReadAll(Shard(shard));
    const std::size_t at = bytes.find(from);
    ASSERT_NE(at, std::string::npos) << bytes.substr(0, 400);
    Forge(shard, bytes.replace(at, from.size(), to));
  }

  std::vector<at::Tensor> Bytes() const {
    std::vector<at::Tensor> files;
    for (int shard = 0; shard < kShards; ++shard) {
      const std::string bytes = ReadAll(Shard(shard));
      files.push_back(at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte));
      std::memcpy(files.back().data_ptr(), bytes.data(), bytes.size());
    }
    return files;
  }
  // The error of each way to read, which must be the same.
  std::string Error() const {
    const auto read = ReadShards(path_);
    EXPECT_EQ(CheckShards(path_), read.status());
    const auto index = ReadShardIndex(ReadAll(path_ + "/index.json"));
    if (index.ok() && fs::exists(Shard(0))) {
      EXPECT_EQ(AssembleShards(path_, *index, Bytes()).status(), read.status());
    }
    EXPECT_TRUE(read.ok() || absl::IsInvalidArgument(read.status())) << read.status();
    return read.ok() ? "none" : std::string(read.status().message());
  }
  // A file of torch.save with `value`, which distinguishes values to the last bit.
  std::string AsFile(const Value& value) const {
    EXPECT_TRUE(WriteTorchFile(value, dir_.Path("file.pt")).ok());
    return ReadAll(dir_.Path("file.pt"));
  }

  const test::TempDir dir_;
  const std::string path_ = dir_.Path("step-000000000012");
};

TEST_F(ShardedCheckpointTest, WhatIsWrittenComesBackToTheLastBit) {
  const Value value = Everything();
  Write(value);
  int shards = 0;
  const auto read = ReadShards(path_, [&](int shard, int count, std::uint64_t bytes) {
    EXPECT_EQ(shard, shards++);
    EXPECT_EQ(count, kShards);
    EXPECT_EQ(bytes, fs::file_size(Shard(shard)));
  });
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(shards, kShards);
  EXPECT_TRUE(AsFile(*read) == AsFile(value));
  const auto index = ReadShardIndex(*ReadIndexText(path_));
  const auto assembled = AssembleShards(path_, *index, Bytes());
  ASSERT_TRUE(assembled.ok()) << assembled.status();
  EXPECT_TRUE(AsFile(*assembled) == AsFile(value));
  EXPECT_EQ(assembled->Find("model")->Find("tied")->tensor()->data_ptr(),
            assembled->Find("model")->Find("large")->tensor()->data_ptr());
  EXPECT_EQ(CheckShards(path_), absl::OkStatus());
}

// Read according to the specification only, as another program would.
TEST_F(ShardedCheckpointTest, TheFilesAreThoseOfTheSpecification) {
  const json index = Index();
  const std::string name = index["weight_map"]["Double"];
  const std::string bytes = ReadAll(path_ + "/" + name);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  const json header = json::parse(bytes.substr(8, length));
  EXPECT_EQ(header["Double"]["dtype"], "F64");
  EXPECT_EQ(header["Double"]["shape"], (json{2, 3}));
  const std::size_t begin = header["Double"]["data_offsets"][0];
  double element = 0;
  std::memcpy(&element, bytes.data() + 8 + length + begin, sizeof(element));
  EXPECT_EQ(element, 1.0);
  EXPECT_EQ(header["__metadata__"]["format"], "pt");
  std::size_t tensors = 0;
  std::uint64_t size = 0;
  for (int shard = 0; shard < kShards; ++shard) {
    const std::string file = ReadAll(Shard(shard));
    std::memcpy(&length, file.data(), 8);
    const json entries = json::parse(file.substr(8, length));
    for (const auto& [tensor, entry] : entries.items()) {
      if (tensor == "__metadata__") continue;
      EXPECT_EQ(path_ + "/" + index["weight_map"][tensor].get<std::string>(), Shard(shard));
      ++tensors;
      size += entry["data_offsets"][1].get<std::uint64_t>() -
              entry["data_offsets"][0].get<std::uint64_t>();
    }
  }
  EXPECT_EQ(tensors, index["weight_map"].size());
  EXPECT_EQ(size, index["metadata"]["total_size"]);
}

TEST_F(ShardedCheckpointTest, AFileThatIsMissingIsNamed) {
  fs::remove(Shard(1));
  EXPECT_EQ(ReadShards(path_).status().message(),
            "read " + Shard(1) + ": No such file or directory");
  EXPECT_EQ(CheckShards(path_), ReadShards(path_).status());
  fs::remove(path_ + "/index.json");
  EXPECT_EQ(ReadShards(path_).status().message(),
            "read " + path_ + "/index.json: No such file or directory");
}

TEST_F(ShardedCheckpointTest, AFileThatIsCutShortOrHasOneOtherBitIsNamed) {
  std::string bytes = ReadAll(Shard(2));
  fs::resize_file(Shard(2), bytes.size() - 1);
  EXPECT_EQ(Error(), absl::StrFormat("read %s: it is damaged: it has %d bytes, and the index says "
                                     "%d",
                                     Shard(2), bytes.size() - 1, bytes.size()));
  for (const std::size_t at : {std::size_t{0}, bytes.size() / 2, bytes.size() - 1}) {
    std::string other = bytes;
    other[at] = static_cast<char>(other[at] ^ 4);
    std::ofstream(Shard(2), std::ios::binary) << other;
    EXPECT_EQ(Error(),
              "read " + Shard(2) + ": it is damaged: its checksum is not the one in the index");
  }
}

TEST_F(ShardedCheckpointTest, AnIndexThatIsDamagedIsNamed) {
  fs::resize_file(path_ + "/index.json", 300);
  EXPECT_EQ(Error(), "read " + path_ + "/index.json: it is damaged: it is not JSON, or truncated");
}

// A shard assembled by hand, with matching checksums.
TEST_F(ShardedCheckpointTest, AShardWhoseHeaderLiesIsRefused) {
  Dict model;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) model.Set(name, at::full({4}, 1.0));
  const auto fresh = [&] {
    Write(model);
    ASSERT_EQ(Error(), "none");
  };
  const std::string begin = "read " + Shard(0) + ": ";
  fresh();  // a and d are in the first one
  ForgeHeader(0, "[16,32]", "[08,32]");
  EXPECT_EQ(Error(), begin + "it is damaged: its header is not JSON");
  fresh();
  ForgeHeader(0, "\"data_offsets\":[16,32]", "\"data_offsets\":[0,16] ");
  EXPECT_EQ(Error(), begin + "it is damaged: there is a gap or overlap at d");
  fresh();
  ForgeHeader(0, "[16,32]", "[32,48]");
  EXPECT_EQ(Error(), begin + "it is damaged: there is a gap or overlap at d");
  fresh();
  ForgeHeader(0, "\"shape\":[4]", "\"shape\":[5]");
  EXPECT_EQ(Error(), begin + "it is damaged: a has data of another size");
  fresh();
  ForgeHeader(0, "\"d\"", "\"e\"");
  EXPECT_EQ(Error(), begin + "it has e, which the index says is not there");
  fresh();
  Forge(0, ReadAll(Shard(0)) + "more");
  EXPECT_EQ(Error(), begin + "it is damaged: it is cut short or has more data");
  fresh();
  const std::string header = R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})";
  Forge(0, std::string("\x37\0\0\0\0\0\0\0", 8) + header + std::string(16, '\0'));
  EXPECT_EQ(Error(), begin + "it has 1 tensors, and the index says 2");
}

TEST_F(ShardedCheckpointTest, ABoolThatIsNeitherTrueNorFalseIsRefused) {
  Dict model;
  for (const char* name : {"a", "b", "c"}) model.Set(name, at::full({4}, true, at::kBool));
  Write(model);
  std::string bytes = ReadAll(Shard(0));
  bytes.back() = 2;
  Forge(0, bytes);
  EXPECT_EQ(ReadShards(path_).status().message(),
            "read " + Shard(0) + ": it is damaged: a has a bool neither true nor false");
}

// Its elements are not aligned for direct access.
TEST_F(ShardedCheckpointTest, AFileOfSomebodyElseNeedNotBeAligned) {
  Dict model;
  for (const char* name : {"a", "b", "c"}) model.Set(name, at::full({4}, 2.5));
  Write(model);
  std::string bytes = ReadAll(Shard(0));
  bytes.insert(8 + static_cast<unsigned char>(bytes[0]), " ");
  bytes[0] = static_cast<char>(bytes[0] + 1);
  Forge(0, bytes);
  ASSERT_EQ(Error(), "none");
  EXPECT_TRUE(AsFile(*ReadShards(path_)) == AsFile(model));
  const auto index = ReadShardIndex(*ReadIndexText(path_));
  EXPECT_TRUE(AsFile(*AssembleShards(path_, *index, Bytes())) == AsFile(model));
}

TEST_F(ShardedCheckpointTest, AFullDiskIsSaid) {
  fs::create_symlink("/dev/full", Shard(0) + ".tmp");
  const auto status = WriteShard(path_, 0, kShards, {{"a", at::full({4}, 1.0)}}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "write " + Shard(0) + ": No space left on device");
}

}  // namespace
}  // namespace muster::trainer

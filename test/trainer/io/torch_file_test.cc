// Checkpoint and safetensors files without Python; interop_test covers Python.
#include "trainer/io/torch_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>

#include "test/trainer/io/interop_files.h"
#include "trainer/io/safetensors.h"

namespace muster::trainer {
namespace {

namespace fs = std::filesystem;

std::string PathFor(const std::string& name) {
  return testing::TempDir() + "/" + name;
}

Value Checkpoint() {
  Dict dict(/*ordered=*/true);
  dict.Set("weight", at::arange(6, at::kFloat).view({2, 3}));
  dict.Set("half", at::ones({3}, at::kHalf));
  dict.Set("scalar", at::scalar_tensor(2.5));
  dict.Set("empty", at::zeros({0, 4}));
  dict.Set("lr", 0.1);
  dict.Set("betas", Value::Tuple({0.9, 0.999}));
  dict.Set("none", Value());
  dict.Set("list", Value::List{1, true, "text"});
  return dict;
}

TEST(TorchFileTest, WhatIsWrittenIsRead) {
  const std::string path = PathFor("round.pt");
  ASSERT_TRUE(WriteTorchFile(Checkpoint(), path).ok());
  const absl::StatusOr<Value> read = ReadTorchFile(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(Describe(*read), Describe(Checkpoint()));
  for (const auto& entry : fs::directory_iterator(fs::path(path).parent_path())) {
    EXPECT_FALSE(entry.path().string().starts_with(path + ".")) << entry.path();
  }
}

TEST(TorchFileTest, EqualValuesGiveEqualFiles) {
  ASSERT_TRUE(WriteTorchFile(Checkpoint(), PathFor("one.pt")).ok());
  ASSERT_TRUE(WriteTorchFile(Checkpoint(), PathFor("two.pt")).ok());
  std::ifstream one(PathFor("one.pt"), std::ios::binary);
  std::ifstream two(PathFor("two.pt"), std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(one), {}),
            std::string(std::istreambuf_iterator<char>(two), {}));
}

TEST(TorchFileTest, ATiedWeightIsWrittenOnceAndStaysTied) {
  const at::Tensor embedding = at::ones({1000});
  Dict dict;
  dict.Set("embedding", embedding);
  dict.Set("head", embedding);
  ASSERT_TRUE(WriteTorchFile(dict, PathFor("tied.pt")).ok());
  EXPECT_LT(fs::file_size(PathFor("tied.pt")), 6000u);
  const absl::StatusOr<Value> read = ReadTorchFile(PathFor("tied.pt"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->Find("embedding")->tensor()->data_ptr(),
            read->Find("head")->tensor()->data_ptr());
}

// Otherwise the whole gradient bucket behind a view would be written.
TEST(TorchFileTest, OnlyTheElementsThatATensorShowsAreWritten) {
  const at::Tensor bucket = at::arange(1'000'000, at::kFloat);
  ASSERT_TRUE(WriteTorchFile(bucket.narrow(0, 5, 3), PathFor("view.pt")).ok());
  EXPECT_LT(fs::file_size(PathFor("view.pt")), 2000u);
  EXPECT_TRUE(at::equal(*ReadTorchFile(PathFor("view.pt"))->tensor(), bucket.narrow(0, 5, 3)));
}

TEST(TorchFileTest, ADtypeThatFilesDoNotHaveIsToldByTheTensorsPlace) {
  const std::string path = PathFor("complex.pt");
  std::ofstream(path) << "old";
  Dict inner;
  inner.Set("spectra", Value::List{1, at::ones({2}, at::kComplexFloat)});
  Dict dict;
  dict.Set("model", inner);
  const absl::Status status = WriteTorchFile(dict, path);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "write " + path +
                ": the tensor ['model']['spectra'][1] is not dense, or of a dtype "
                "that is not written");
  EXPECT_EQ(WriteTorchFile(at::Tensor(), path).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(fs::file_size(path), 3u);
}

TEST(TorchFileTest, AFullDiskIsAnErrorAndLeavesTheOldFile) {
  const std::string path = PathFor("full.pt");
  ASSERT_TRUE(WriteTorchFile(at::ones({2}), path).ok());
  fs::create_symlink("/dev/full", path + ".tmp");  // a device that is always full
  const absl::Status status = WriteTorchFile(at::ones({1 << 20}), path, Folder::kOfCheckpoints);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "write " + path + ": No space left on device");
  EXPECT_TRUE(ReadTorchFile(path).ok());
  EXPECT_FALSE(fs::is_symlink(path + ".tmp"));
}

TEST(TorchFileTest, AFileThatIsNoneOrTornIsTheUsersToReplace) {
  const std::string missing = PathFor("missing.pt");
  EXPECT_EQ(ReadTorchFile(missing).status().message(),
            "read " + missing + ": No such file or directory");
  EXPECT_EQ(ReadTorchFile("/tmp").status().message(), "read /tmp: is not a regular file");
  const std::string path = PathFor("torn.pt");
  ASSERT_TRUE(WriteTorchFile(at::ones({1 << 20}), path).ok());
  fs::resize_file(path, 1 << 20);
  const absl::Status status = ReadTorchFile(path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "read " + path + ": it is damaged: its end is missing");
}

at::Tensor BytesOfFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const at::Tensor bytes = at::zeros({static_cast<std::int64_t>(text.size())}, at::kByte);
  std::memcpy(bytes.data_ptr(), text.data(), text.size());
  return bytes;
}

// A resuming rank held a checkpoint three times: received, in a memfd, and as tensors.
TEST(TorchFileTest, AFileInMemoryIsReadWhereItIs) {
  const std::string path = PathFor("memory.pt");
  ASSERT_TRUE(WriteTorchFile(Checkpoint(), path).ok());
  absl::StatusOr<Value> read = absl::UnknownError("");
  {
    const at::Tensor bytes = BytesOfFile(path);
    read = ReadTorchBytes(bytes);
    ASSERT_TRUE(read.ok()) << read.status();
    const auto* first = static_cast<const std::uint8_t*>(bytes.data_ptr());
    const auto* weight =
        static_cast<const std::uint8_t*>(read->Find("weight")->tensor()->data_ptr());
    EXPECT_GE(weight, first);
    EXPECT_LT(weight, first + bytes.numel());
  }
  EXPECT_EQ(Describe(*read), Describe(Checkpoint())) << "the bytes stay as long as the tensors";

  // Ten bytes further on nothing is aligned any more, and must be copied.
  const at::Tensor moved = at::zeros({10 + BytesOfFile(path).numel()}, at::kByte);
  moved.narrow(0, 10, BytesOfFile(path).numel()).copy_(BytesOfFile(path));
  read = ReadTorchBytes(moved.narrow(0, 10, BytesOfFile(path).numel()));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(Describe(*read), Describe(Checkpoint()));
}

TEST(TorchFileTest, AFileThatIsOnlyCheckedIsRefusedAsOneThatIsRead) {
  const std::string path = PathFor("checked.pt");
  ASSERT_TRUE(WriteTorchFile(at::ones({1 << 20}), path).ok());
  EXPECT_TRUE(CheckTorchFile(path).ok());
  const at::Tensor bytes = BytesOfFile(path);
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(1 << 20);
    file.put('x');
  }
  EXPECT_EQ(CheckTorchFile(path), ReadTorchFile(path).status());
  EXPECT_EQ(CheckTorchFile(path).message(),
            "read " + path + ": it is damaged: a checksum is wrong");
  bytes[1 << 20] = 'x';
  EXPECT_EQ(ReadTorchBytes(bytes).status().message(), "it is damaged: a checksum is wrong");
  EXPECT_EQ(CheckTorchFile("/tmp"), ReadTorchFile("/tmp").status());
}

long PeakKilobytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(TorchFileTest, ALargeFileIsNeverInMemoryTwice) {
  const std::string path = PathFor("large.pt");
  constexpr std::int64_t kMegabytes = 256;
  {
    Dict dict;
    for (int i = 0; i < 4; ++i) {
      dict.Set(std::to_string(i), at::full({kMegabytes / 4, 1 << 18}, i, at::kFloat));
    }
    const long before = PeakKilobytes();
    ASSERT_TRUE(WriteTorchFile(dict, path).ok());
    EXPECT_LT(PeakKilobytes() - before, 16 * 1024);
  }
  // The tensors above are freed, and those that are read take their place.
  const long before = PeakKilobytes();
  const absl::StatusOr<Value> read = ReadTorchFile(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->Find("3")->tensor()->sum().item<double>(), 3.0 * kMegabytes / 4 * (1 << 18));
  EXPECT_LT(PeakKilobytes() - before, 16 * 1024);
  fs::remove(path);
}

TEST(SafetensorsTest, WhatIsWrittenIsReadWithLargerElementsFirst) {
  const std::string path = PathFor("model.safetensors");
  const at::Tensor matrix = at::arange(6, at::kFloat).view({2, 3});
  ASSERT_TRUE(WriteSafetensors({{{"flag", at::ones({1}, at::kBool)},
                                 {"transposed", matrix.t()},
                                 {"long", at::scalar_tensor(7, at::kLong)}},
                                {{"step", "3"}}},
                               path)
                  .ok());
  const absl::StatusOr<SafetensorsContents> read = ReadSafetensors(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->metadata.at("step"), "3");
  ASSERT_EQ(read->tensors.size(), 3u);
  EXPECT_EQ(read->tensors[0].name, "long");
  EXPECT_EQ(read->tensors[0].tensor.item<std::int64_t>(), 7);
  EXPECT_TRUE(at::equal(read->tensors[1].tensor, matrix.t()));
  EXPECT_EQ(read->tensors[2].tensor.scalar_type(), at::kBool);
}

// Of an exported file with one bit changed, five of eight were read without an error.
TEST(SafetensorsTest, AnyBitThatHasChangedIsFound) {
  const std::string path = PathFor("changed.safetensors");
  const at::Tensor weight = at::arange(6, at::kFloat).view({2, 3});
  ASSERT_TRUE(WriteSafetensors(
                  {{{"fc.weight", weight}, {"fc.bias", at::ones({2})}}, {{"format", "pt"}}}, path)
                  .ok());
  std::stringstream whole;
  whole << std::ifstream(path, std::ios::binary).rdbuf();
  const std::string bytes = whole.str();
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string changed = bytes;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    std::ofstream(path, std::ios::binary) << changed;
    const absl::Status status = ReadSafetensors(path).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << "bit " << bit;
  }
  std::ofstream(path, std::ios::binary) << bytes;
  const auto read = ReadSafetensors(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->metadata, (std::map<std::string, std::string>{{"format", "pt"}}));
}

// Python's save_file() writes other tensors with the metadata it has read: the checksum there does
// not match them.
TEST(SafetensorsTest, AnotherProgramsFileIsReadWhateverItsMetadataSays) {
  const std::string path = PathFor("rewritten.safetensors");
  ASSERT_TRUE(WriteSafetensors({{{"fc.bias", at::ones({2})}}, {}}, path).ok());
  std::stringstream whole;
  whole << std::ifstream(path, std::ios::binary).rdbuf();
  const std::string bytes = whole.str();
  const std::size_t length = static_cast<unsigned char>(bytes[0]);
  std::string text = bytes.substr(8, length);
  text.erase(text.find_last_not_of(' ') + 1);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string data = bytes.substr(8 + length);
  data[0] ^= 1;
  ASSERT_LT(text.size(), 256u);
  std::ofstream(path, std::ios::binary)
      << static_cast<char>(text.size()) << std::string(7, '\0') << text << data;
  const auto read = ReadSafetensors(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->metadata.empty());
}

TEST(SafetensorsTest, WhatCannotBeWrittenOrReadGetsASentence) {
  const std::string path = PathFor("bad.safetensors");
  EXPECT_EQ(
      WriteSafetensors({{{"a", at::ones({1})}, {"a", at::ones({1})}}, {}}, path).status().message(),
      "write " + path + ": the name a is taken");
  EXPECT_EQ(
      WriteSafetensors({{{"z", at::ones({1}, at::kComplexFloat)}}, {}}, path).status().message(),
      "write " + path + ": the tensor z is not dense, or of a dtype that is not written");
  EXPECT_FALSE(fs::exists(path));
  ASSERT_TRUE(WriteSafetensors({{{"a", at::ones({100})}}, {}}, path).ok());
  fs::resize_file(path, fs::file_size(path) - 1);
  EXPECT_EQ(ReadSafetensors(path).status().message(),
            "read " + path + ": it is damaged: it is cut short or has more data");
}

}  // namespace
}  // namespace muster::trainer

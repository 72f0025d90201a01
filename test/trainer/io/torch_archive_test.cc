// torch.save files, intact, truncated and with bytes changed, without LibTorch.
#include "trainer/io/formats/torch_archive.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "trainer/io/formats/files.h"
#include "trainer/io/formats/zip_archive.h"

namespace muster::trainer {
namespace {

using Records = std::vector<std::pair<std::string, std::string>>;

std::string Contents(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::string Zip(const Records& records) {
  const std::string path = testing::TempDir() + "/archive.zip";
  auto file = DurableFile::Create(path);
  EXPECT_TRUE(file.ok()) << file.status();
  ZipWriter zip(**file);
  for (const auto& [name, data] : records) EXPECT_TRUE(zip.Add(name, data).ok());
  EXPECT_TRUE(zip.Finish().ok());
  EXPECT_TRUE((*file)->Commit().ok());
  return Contents(path);
}

// Six int16 and three bools, and a note.
std::string Pickle() {
  StoredDict dict;
  dict.Set("numbers", StoredTensor{.storage = 0, .sizes = {2, 3}, .strides = {3, 1}});
  dict.Set("flags", StoredTensor{.storage = 1, .sizes = {3}, .strides = {1}});
  dict.Set("note", "hello");
  return WritePickle(dict, {{"0", Dtype::kInt16, 6}, {"1", Dtype::kBool, 3}}).value();
}

Records WholeRecords() {
  return {{"archive/data.pkl", Pickle()},
          {"archive/byteorder", "little"},
          {"archive/data/0", std::string("\1\0\2\0\3\0\4\0\5\0\6\0", 12)},
          {"archive/data/1", std::string("\1\0\1", 3)},
          {"archive/version", "3\n"}};
}

// The result of reading all of it: "whole: " and the elements, or the error, which must be the same
// when only checking.
std::string Read(const std::string& bytes) {
  // Memory of its own, so that a look beyond its end is found.
  const std::vector<char> own(bytes.begin(), bytes.end());
  const MemorySource source({own.data(), own.size()});
  const auto archive = TorchArchive::Open(source);
  if (!archive.ok()) return std::string(archive.status().message());
  std::string out;
  for (std::size_t i = 0; i < archive->storages().size(); ++i) {
    const Storage& storage = archive->storages()[i];
    std::string elements(static_cast<std::size_t>(storage.elements) * ElementSize(storage.dtype),
                         '\0');
    const absl::Status status = archive->ReadStorage(i, elements.data());
    if (!status.ok()) {
      EXPECT_EQ(archive->CheckStorages(), status);
      return std::string(status.message());
    }
    EXPECT_EQ(std::string_view(own.data() + archive->OffsetOf(i), elements.size()), elements);
    out += elements;
  }
  EXPECT_TRUE(archive->CheckStorages().ok());
  return "whole: " + out + archive->value().GetString("note").value_or("");
}

const std::string& WholeReading() {
  static const auto* const reading =
      new std::string(std::string("whole: \1\0\2\0\3\0\4\0\5\0\6\0\1\0\1hello", 7 + 12 + 3 + 5));
  return *reading;
}

TEST(TorchArchiveTest, WhatIsWrittenIsReadAndAligned) {
  const std::string bytes = Zip(WholeRecords());
  EXPECT_EQ(Read(bytes), WholeReading());
  EXPECT_EQ(bytes.find(WholeRecords()[2].second) % 64, 0u);
}

TEST(TorchArchiveTest, AFileThatIsCutShortAnywhereIsRefused) {
  const std::string bytes = Zip(WholeRecords());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(Read(bytes.substr(0, size)).rfind("whole", 0), 0u) << size;
  }
  EXPECT_EQ(Read(bytes.substr(0, bytes.size() - 1)), "it is damaged: its end is missing");
}

// A changed byte is either detected or unused (a date, padding): then nothing changes.
TEST(TorchArchiveTest, AChangedByteNeverChangesWhatIsRead) {
  const std::string bytes = Zip(WholeRecords());
  int found = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const int flip : {0x01, 0x10, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      const std::string reading = Read(changed);
      if (reading.rfind("whole", 0) == 0) {
        EXPECT_EQ(reading, WholeReading()) << at << " " << flip;
      } else {
        ++found;
      }
    }
  }
  EXPECT_GT(found, 1000);
}

TEST(TorchArchiveTest, ManyChangedBytesNeverCrash) {
  const std::uint32_t seed = 20260101;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const std::string bytes = Zip(WholeRecords());
  for (int round = 0; round < 3000; ++round) {
    std::string changed = bytes;
    for (int i = 0; i < 1 + round % 8; ++i) {
      changed[random() % changed.size()] = static_cast<char>(random());
    }
    if (round % 5 == 0) changed.erase(random() % changed.size(), random() % 64);
    const std::string reading = Read(changed);
    if (reading.rfind("whole", 0) == 0) {
      EXPECT_EQ(reading, WholeReading());
    }
  }
}

TEST(TorchArchiveTest, AStorageOfAnotherSizeOrNoneIsRefused) {
  Records records = WholeRecords();
  records[2].second.pop_back();
  EXPECT_EQ(Read(Zip(records)), "it is damaged: storage 0 is missing or of a wrong size");
  records = WholeRecords();
  records[3].first = "archive/data/2";
  EXPECT_EQ(Read(Zip(records)), "it is damaged: storage 1 is missing or of a wrong size");
}

TEST(TorchArchiveTest, ABoolIsTrueOrFalse) {
  Records records = WholeRecords();
  records[3].second = "\1\2\1";
  EXPECT_EQ(Read(Zip(records)), "it is damaged: a bool is neither true nor false");
}

TEST(TorchArchiveTest, RecordsDoNotShareBytes) {
  // The second directory entry points to the first record.
  std::string bytes = Zip({{"a/data.pkl", Pickle()}, {"a/data/0", std::string(12, 'x')}});
  const std::size_t directory = bytes.find("PK\x01\x02");
  const std::size_t second = bytes.find("PK\x01\x02", directory + 4);
  ASSERT_NE(second, std::string::npos);
  const std::size_t offset_in_extra = 46 + std::string("a/data/0").size() + 4 + 16;
  bytes.replace(second + offset_in_extra, 8, std::string(8, '\0'));
  EXPECT_EQ(Read(bytes), "it is damaged: two records overlap");
}

TEST(TorchArchiveTest, OtherFilesGetASentence) {
  EXPECT_EQ(Read(""), "it is not a file of torch.save");
  EXPECT_EQ(Read("PNG and so on, for longer than that"), "it is not a file of torch.save");
  EXPECT_EQ(Read(Zip({{"letter.txt", "hello"}})), "it is not a file of torch.save");
  EXPECT_EQ(Read(Zip({{"a/data.pkl", Pickle()}, {"a/constants.pkl", ""}})),
            "it is a TorchScript program (torch.jit.save); save its state_dict() with torch.save");
  EXPECT_EQ(Read(Zip({{"a/data.pkl", Pickle()}, {"a/byteorder", "big"}})),
            "it is from a machine with another order of bytes");
}

}  // namespace
}  // namespace muster::trainer

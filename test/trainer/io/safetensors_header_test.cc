#include "trainer/io/formats/safetensors_header.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::trainer {
namespace {

// A file with this header, and `data_size` bytes of elements.
std::string File(const std::string& header, std::size_t data_size) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i));
  return bytes + header + std::string(data_size, 'x');
}

std::string ErrorOf(const std::string& file) {
  const std::vector<char> own(file.begin(), file.end());
  const auto header = ReadSafetensorsHeader(MemorySource({own.data(), own.size()}));
  return header.ok() ? "none" : std::string(header.status().message());
}

std::string Entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

TEST(SafetensorsHeaderTest, WhatIsLaidOutIsRead) {
  SafetensorsHeader header;
  header.metadata = {{"format", "pt"}};
  header.entries = {{.name = "z", .dtype = Dtype::kInt64, .sizes = {2, 1}},
                    {.name = "a\"b", .dtype = Dtype::kBool, .sizes = {}},
                    {.name = "none", .dtype = Dtype::kFloat16, .sizes = {0, 7}}};
  const auto bytes = LayOutSafetensors(header);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(bytes->size() % 8, 0u);
  const std::string file = *bytes + std::string(17, 'x');
  const auto read = ReadSafetensorsHeader(MemorySource(file));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->metadata, header.metadata);
  EXPECT_EQ(read->data_offset, bytes->size());
  ASSERT_EQ(read->entries.size(), 3u);
  EXPECT_EQ(read->entries[0].name, "z");
  EXPECT_EQ(read->entries[0].sizes, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(read->entries[1].name, "a\"b");
  EXPECT_EQ(read->entries[1].offset, 16u);
  EXPECT_EQ(read->entries[2].size, 0u);
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_NE(ErrorOf(file.substr(0, size)), "none") << size;
  }
}

TEST(SafetensorsHeaderTest, ElementsFollowEachOtherWithoutGapOrOverlap) {
  const std::string a = Entry("a", "F32", "[2]", "[0,8]");
  EXPECT_EQ(ErrorOf(File("{" + a + "}", 8)), "none");
  EXPECT_EQ(ErrorOf(File("{" + a + "," + Entry("b", "U8", "[4]", "[8,12]") + "}", 12)), "none");
  EXPECT_EQ(ErrorOf(File("{" + a + "," + Entry("b", "U8", "[4]", "[9,13]") + "}", 13)),
            "it is damaged: there is a gap or overlap at b");
  EXPECT_EQ(ErrorOf(File("{" + a + "," + Entry("b", "U8", "[4]", "[4,8]") + "}", 8)),
            "it is damaged: there is a gap or overlap at b");
  EXPECT_EQ(ErrorOf(File("{" + a + "}", 9)), "it is damaged: it is cut short or has more data");
  EXPECT_EQ(ErrorOf(File("{" + a + "}", 7)), "it is damaged: it is cut short or has more data");
}

TEST(SafetensorsHeaderTest, AShapeThatDoesNotMatchItsDataIsRefused) {
  const std::string size = "it is damaged: a has data of another size";
  EXPECT_EQ(ErrorOf(File("{" + Entry("a", "F32", "[3]", "[0,8]") + "}", 8)), size);
  // 2^62 * 4 * 4 would overflow to 0.
  EXPECT_EQ(ErrorOf(File("{" + Entry("a", "F32", "[4611686018427387904,4]", "[0,0]") + "}", 0)),
            size);
  EXPECT_EQ(ErrorOf(File("{" + Entry("a", "F32", "[-1]", "[0,0]") + "}", 0)),
            "it is damaged: a has a bad shape");
  EXPECT_EQ(ErrorOf(File("{" + Entry("a", "F32", "[1.5]", "[0,6]") + "}", 6)),
            "it is damaged: a has a bad shape");
  EXPECT_EQ(ErrorOf(File("{" + Entry("a", "F32", "[0]", "[8,0]") + "}", 8)),
            "it is damaged: a has bad data_offsets");
  EXPECT_EQ(ErrorOf(File("{" + Entry("a", "F32", "[0]", "[18446744073709551615,0]") + "}", 8)),
            "it is damaged: a has bad data_offsets");
  EXPECT_EQ(ErrorOf(File("{" + Entry("a", "F8_E4M3", "[8]", "[0,8]") + "}", 8)),
            "a is of dtype F8_E4M3, which is not read here");
}

TEST(SafetensorsHeaderTest, OtherFilesGetASentence) {
  const std::string other = "it is not a safetensors file";
  EXPECT_EQ(ErrorOf(""), "it is damaged: it is cut short");
  EXPECT_EQ(ErrorOf("this is a text, no tensors"), other + ", or cut short");
  EXPECT_EQ(ErrorOf(File("[1]", 0)), other);
  EXPECT_EQ(ErrorOf(File("{" + std::string(5'000'000, '['), 0)), other);
  EXPECT_EQ(ErrorOf(File("{\"a\":", 0)), "it is damaged: its header is not JSON");
  EXPECT_EQ(ErrorOf(File("{\"a\":1}", 0)), "it is damaged: a has no dtype, shape and data_offsets");
  EXPECT_EQ(ErrorOf(File("{\"__metadata__\":{\"a\":1}}", 0)),
            "it is damaged: its metadata is not text");
}

TEST(SafetensorsHeaderTest, NamesAreUniqueAndText) {
  SafetensorsHeader twice;
  twice.entries = {{.name = "a"}, {.name = "a"}};
  EXPECT_EQ(LayOutSafetensors(twice).status().message(), "the name a is taken");
  SafetensorsHeader reserved;
  reserved.entries = {{.name = "__metadata__"}};
  EXPECT_FALSE(LayOutSafetensors(reserved).ok());
  SafetensorsHeader bytes;
  bytes.entries = {{.name = "\xff"}};
  EXPECT_EQ(LayOutSafetensors(bytes).status().message(), "a name or the metadata is not UTF-8");
}

}  // namespace
}  // namespace muster::trainer

#include "trainer/data/samples/image_sets.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

namespace muster::trainer {
namespace {

// Two images of 2 x 3 pixels.
const std::string kGood = std::string("\0\0\x08\x03", 4) +
                          std::string("\0\0\0\x02\0\0\0\x02\0\0\0\x03", 12) +
                          std::string("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\xff", 12);

// A separate directory for each test.
class IdxTest : public testing::Test {
 protected:
  IdxTest()
      : dir_(std::filesystem::path(testing::TempDir()) /
             testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(dir_);
    std::filesystem::create_directories(dir_);
  }

  std::string Plain(const std::string& name, const std::string& bytes) {
    std::ofstream(dir_ / name, std::ios::binary) << bytes;
    return (dir_ / name).string();
  }

  std::string Gzipped(const std::string& name, const std::string& bytes) {
    const std::string path = (dir_ / name).string();
    gzFile file = gzopen(path.c_str(), "wb");
    EXPECT_EQ(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())),
              static_cast<int>(bytes.size()));
    EXPECT_EQ(gzclose(file), Z_OK);
    return path;
  }

  // ReadIdx's error about the file at `path`, which it must refuse.
  static std::string Refusal(const std::string& path) {
    const absl::StatusOr<IdxArray> array = ReadIdx(path);
    EXPECT_EQ(array.status().code(), absl::StatusCode::kInvalidArgument) << array.status();
    const std::string message(array.status().message());
    EXPECT_NE(message.find(path), std::string::npos) << message;
    return message;
  }

  const std::filesystem::path dir_;
};

void ExpectGood(const absl::StatusOr<IdxArray>& array) {
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->dims, (std::vector<std::int64_t>{2, 2, 3}));
  EXPECT_EQ(array->bytes, (std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 255}));
}

TEST_F(IdxTest, ReadsPlainAndGzippedFiles) {
  ExpectGood(ReadIdx(Plain("plain", kGood)));
  ExpectGood(ReadIdx(Gzipped("zipped", kGood)));
}

TEST_F(IdxTest, PrefersThePlainFileAndFallsBackToTheGzippedOne) {
  Gzipped("images.gz", kGood);
  ExpectGood(ReadIdxFrom(dir_.string(), "images"));
  Plain("images", "not this one");
  EXPECT_FALSE(ReadIdxFrom(dir_.string(), "images").ok());
}

TEST_F(IdxTest, NamesWhatIsMissing) {
  EXPECT_EQ(ReadIdxFrom(dir_.string(), "images").status().message(),
            "read data from " + dir_.string() + ": it has neither images nor images.gz");
  EXPECT_EQ(ReadIdxFrom("/no/such", "images").status().message(),
            "read data from /no/such: no such directory");
  EXPECT_NE(Refusal((dir_ / "nothing").string()).find("No such file"), std::string::npos);
}

TEST_F(IdxTest, RefusesAWrongMagic) {
  EXPECT_NE(Refusal(Plain("text", "hello world")).find("not an IDX file"), std::string::npos);
  std::string floats = kGood;
  floats[2] = 0x0d;
  EXPECT_NE(Refusal(Plain("floats", floats)).find("00 00 0d 03"), std::string::npos);
  std::string no_dims = kGood;
  no_dims[3] = 0;
  EXPECT_NE(Refusal(Plain("no_dims", no_dims)).find("not an IDX file"), std::string::npos);
  std::string many_dims = kGood;
  many_dims[3] = 5;
  EXPECT_NE(Refusal(Plain("many_dims", many_dims)).find("not an IDX file"), std::string::npos);
}

TEST_F(IdxTest, RefusesAFileCutAnywhere) {
  for (std::size_t length = 0; length < kGood.size(); ++length) {
    SCOPED_TRACE(length);
    const std::string message = Refusal(Plain("cut", kGood.substr(0, length)));
    EXPECT_NE(message.find(length < 16 ? "too short" : "truncated"), std::string::npos) << message;
  }
}

TEST_F(IdxTest, RefusesAGzipFileCutAnywhere) {
  const std::string path = Gzipped("whole", kGood);
  const auto size = static_cast<std::size_t>(std::filesystem::file_size(path));
  // A prefix too short to be recognized as gzip counts as a short plain file.
  for (std::size_t length = 1; length < size; ++length) {
    SCOPED_TRACE(length);
    std::filesystem::copy_file(path, dir_ / "cut",
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(dir_ / "cut", length);
    Refusal((dir_ / "cut").string());
  }
}

TEST_F(IdxTest, RefusesWhatIsLongerThanItsHeaderSays) {
  EXPECT_NE(Refusal(Plain("long", kGood + "x")).find("longer"), std::string::npos);
}

TEST_F(IdxTest, RefusesDimensionsThatPromiseTooMuchWithoutAllocatingThem) {
  const std::string huge = std::string("\0\0\x08\x03", 4) + std::string(12, '\xff');
  EXPECT_NE(Refusal(Plain("huge", huge)).find("more than 4 GiB"), std::string::npos);
  const std::string large = std::string("\0\0\x08\x01\xf0\0\0\0", 8) + "abc";
  EXPECT_NE(Refusal(Plain("large", large)).find("truncated"), std::string::npos);
}

TEST_F(IdxTest, RefusesADirectory) {
  EXPECT_NE(Refusal(dir_.string()).find("is a directory"), std::string::npos);
}

}  // namespace
}  // namespace muster::trainer

#include "trainer/worker/launcher_link.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace muster::trainer {
namespace {

TEST(ErrorFileTest, HasTheFormOfTorchrun) {
  EXPECT_EQ(ErrorFileJson("lost rank 3", "", 1700000000),
            "{\"message\":{\"message\":\"lost rank 3\","
            "\"extraInfo\":{\"timestamp\":\"1700000000\"}}}\n");
}

// torchrun shows the call stack instead of the message: Python's ends with it, and so does ours.
TEST(ErrorFileTest, TheStackEndsWithTheMessage) {
  EXPECT_EQ(ErrorFileJson("lost rank 3", "#0 main\n", 1700000000),
            "{\"message\":{\"message\":\"lost rank 3\","
            "\"extraInfo\":{\"timestamp\":\"1700000000\","
            "\"py_callstack\":\"#0 main\\n\\nlost rank 3\"}}}\n");
}

TEST(ErrorFileTest, EscapesWhatJsonDoesNotTake) {
  const std::string json = ErrorFileJson("a \"b\" \\ c\nd\te \x01 \xc3\xa9", "", 0);
  EXPECT_NE(json.find("\"a \\\"b\\\" \\\\ c\\nd\\te \\u0001 \xc3\xa9\""), std::string::npos)
      << json;
}

// The launcher could not read the error file, and showed nothing of it.
TEST(ErrorFileTest, BytesThatAreNoTextDoNotMakeItUnreadable) {
  const std::string json = ErrorFileJson("read \xff.pt", "", 0);
  EXPECT_NE(json.find("\"read \xef\xbf\xbd.pt\""), std::string::npos) << json;
}

TEST(ErrorFileTest, ReplacesTheFileAtThePath) {
  const std::string path = testing::TempDir() + "/error.json";
  ASSERT_TRUE(WriteErrorFile(path, "a first and longer message", "").ok());
  ASSERT_TRUE(WriteErrorFile(path, "second", "").ok());
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str().rfind("{\"message\":{\"message\":\"second\",", 0), 0u) << text.str();
  EXPECT_EQ(text.str().find("longer"), std::string::npos);
}

TEST(ErrorFileTest, NoPathMeansNoFile) {
  EXPECT_TRUE(WriteErrorFile("", "lost", "").ok());
}

TEST(ErrorFileTest, SaysWhyTheFileCannotBeWritten) {
  const absl::Status status = WriteErrorFile("/no/such/dir/error.json", "lost", "");
  EXPECT_EQ(status.message(),
            "write error file /no/such/dir/error.json: No such file or directory");
}

}  // namespace
}  // namespace muster::trainer

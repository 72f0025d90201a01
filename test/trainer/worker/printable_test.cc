#include "trainer/worker/step_log.h"

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

// A file's name with an escape sequence cleared the terminal.
TEST(PrintableTest, ControlCharactersAreShownAndNotObeyed) {
  EXPECT_EQ(Printable("read a\x1b[2J\r\n\t\x7f"
                      "b: no such file"),
            "read a?[2J????b: no such file");
  EXPECT_EQ(Printable("\xc2\x9b[2J"), "?[2J") << "the same in one character";
  EXPECT_EQ(Printable("a\u202eb\xff"), "a?b?") << "and nothing turns the line around";
  EXPECT_EQ(Printable("two\nlines\x1b", /*lines=*/true), "two\nlines?");
}

TEST(PrintableTest, AnythingElseStaysAsItIs) {
  const std::string text = "M\xc3\xa4rz \xc2\xa0 \xe2\x82\xac";
  EXPECT_EQ(Printable(text), text);
  EXPECT_EQ(Printable(""), "");
}

}  // namespace
}  // namespace muster::trainer

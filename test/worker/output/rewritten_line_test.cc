// What a terminal shows when several workers write to it and some of them rewrite their lines.
#include "worker/output/rewritten_line.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace muster::worker {
namespace {

// As much of a terminal as is needed: '\r' and '\n', and characters that replace others.
class Screen {
 public:
  void Show(const std::string& bytes) {
    for (const char byte : bytes) {
      if (byte == '\r') {
        column_ = 0;
      } else if (byte == '\n') {
        rows_.emplace_back();
        column_ = 0;
      } else {
        std::string& row = rows_.back();
        if (row.size() <= column_) row.resize(column_ + 1, ' ');
        row[column_++] = byte;
      }
    }
  }

  // Rows without the spaces at their ends.
  std::vector<std::string> rows() const {
    std::vector<std::string> rows = rows_;
    for (std::string& row : rows) row.erase(row.find_last_not_of(' ') + 1);
    return rows;
  }

 private:
  std::vector<std::string> rows_ = {""};
  std::size_t column_ = 0;
};

using Rows = std::vector<std::string>;

class RewrittenLineTest : public testing::Test {
 protected:
  void Rewrite(const void* writer, const std::string& line, int columns = 80) {
    screen_.Show(bar_.Rewrite(writer, line, columns));
  }
  void Lines(const void* writer, const std::string& lines) {
    screen_.Show(bar_.Leave(writer) + lines);
  }

  const char writers_[2] = {};
  const void* const a_ = &writers_[0];
  const void* const b_ = &writers_[1];
  RewrittenLine bar_;
  Screen screen_;
};

TEST_F(RewrittenLineTest, ABarStaysOneLine) {
  Rewrite(a_, "[0]:10%");
  Rewrite(a_, "[0]:100%");
  Rewrite(a_, "[0]:20%");
  EXPECT_EQ(screen_.rows(), (Rows{"[0]:20%"})) << "nothing of a longer one is left";
}

TEST_F(RewrittenLineTest, ItsOwnLinesTakeItsPlace) {
  Rewrite(a_, "[0]:a long bar");
  Lines(a_, "[0]:note\n");
  Rewrite(a_, "[0]:20%");
  Lines(a_, "[0]:done\n");
  EXPECT_EQ(screen_.rows(), (Rows{"[0]:note", "[0]:done", ""}));
}

TEST_F(RewrittenLineTest, LinesOfOthersLeaveItBehind) {
  Rewrite(a_, "[0]:10%");
  Lines(b_, "[1]:hello\n");
  Lines(b_, "[1]:again\n");
  Rewrite(a_, "[0]:20%");
  Lines(nullptr, "muster: note\n");
  EXPECT_EQ(screen_.rows(),
            (Rows{"[0]:10%", "[1]:hello", "[1]:again", "[0]:20%", "muster: note", ""}));
}

TEST_F(RewrittenLineTest, TwoBarsByTurnsAreLines) {
  Rewrite(a_, "[0]:10%");
  Rewrite(b_, "[1]:10%");
  Rewrite(b_, "[1]:20%");
  Rewrite(a_, "[0]:20%");
  EXPECT_EQ(screen_.rows(), (Rows{"[0]:10%", "[1]:20%", "[0]:20%"}));
}

TEST_F(RewrittenLineTest, WhatDoesNotFitIsCut) {
  Rewrite(a_, "[0]:0123456789", 10);
  EXPECT_EQ(screen_.rows(), (Rows{"[0]:01234"})) << "the last column stays free";
}

TEST(VisibleWidthTest, CharactersCountAndEscapeSequencesDoNot) {
  EXPECT_EQ(VisibleWidth("abc"), 3u);
  EXPECT_EQ(VisibleWidth("█▌é"), 3u);
  EXPECT_EQ(VisibleWidth("\x1b[31mred\x1b[0m"), 3u);
  EXPECT_EQ(VisibleWidth("\x1b"), 0u);
  EXPECT_EQ(VisibleWidth("\x1b["), 0u);
}

TEST(VisibleWidthTest, ColoursThatWereSwitchedOnAreSwitchedOff) {
  EXPECT_EQ(CutToWidth("\x1b[31mred text\x1b[0m", 3), "\x1b[31mred\x1b[0m");
  EXPECT_EQ(CutToWidth("█▌é", 2), "█▌");
}

}  // namespace
}  // namespace muster::worker

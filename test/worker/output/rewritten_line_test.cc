// What a terminal shows when several workers write to it and some of them rewrite their lines.
#include "worker/output/lines.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace muster::worker {
namespace {

// A minimal terminal: '\r' and '\n', and characters that replace others.
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

  // Rows without trailing spaces.
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
    std::string_view rest = lines;
    const std::string before = bar_.Leave(writer, rest);
    screen_.Show(before + std::string(rest));
  }
  void Part(const void* writer, const std::string& line) { screen_.Show(bar_.Show(writer, line)); }

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

// "A debugger's prompt is hidden until something is typed."
TEST_F(RewrittenLineTest, ALineThatIsShownInPartsIsContinued) {
  Part(a_, "[0]:(Pdb) ");
  Part(a_, "[0]:(Pdb) no");
  EXPECT_EQ(screen_.rows(), (Rows{"[0]:(Pdb) no"}));
  Lines(a_, "[0]:(Pdb) nothing\n[0]:next\n");
  EXPECT_EQ(screen_.rows(), (Rows{"[0]:(Pdb) nothing", "[0]:next", ""})) << "one prefix for each";
}

TEST_F(RewrittenLineTest, APartThatAnotherHasEndedIsBegunAgain) {
  Part(a_, "[0]:(Pdb) ");
  Lines(b_, "[1]:hello\n");
  Lines(a_, "[0]:(Pdb) over\n");
  Part(a_, "[0]:(Pdb) ");
  Part(b_, "[1]:(Pdb) ");
  Part(a_, "[0]:(Pdb) x");
  Lines(nullptr, "muster: note\n");
  EXPECT_EQ(screen_.rows(), (Rows{"[0]:(Pdb)", "[1]:hello", "[0]:(Pdb) over", "[0]:(Pdb)",
                                  "[1]:(Pdb)", "[0]:(Pdb) x", "muster: note", ""}));
}

TEST_F(RewrittenLineTest, APartMayBecomeABar) {
  Part(a_, "[0]:10%");
  Rewrite(a_, "[0]:9%");
  Rewrite(a_, "[0]:100%");
  Lines(a_, "[0]:done\n");
  Part(a_, "[0]:0%");
  Lines(a_, "[0]:50%\n");
  EXPECT_EQ(screen_.rows(), (Rows{"[0]:done", "[0]:50%", ""}));
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

#include "rendezvous/identity/token.h"

#include <string>

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

TEST(TokenTest, IsReadAsItIsWritten) {
  const Token token = Token::Random();
  const std::string text = token.Text();
  EXPECT_EQ(text.size(), 65u);
  EXPECT_EQ(text.back(), '\n');
  const auto read = Token::Parse(text);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, token);
}

TEST(TokenTest, NoTwoAreTheSame) {
  EXPECT_NE(Token::Random(), Token::Random());
}

TEST(TokenTest, WhiteSpaceAroundItAndCapitalDigitsAreTaken) {
  const std::string digits = "000102030405060708090A0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
  const auto token = Token::Parse(" \t" + digits + "\r\n\n");
  ASSERT_TRUE(token.ok());
  EXPECT_EQ(token->bytes()[0], 0);
  EXPECT_EQ(token->bytes()[10], 10);
  EXPECT_EQ(token->bytes()[31], 31);
}

TEST(TokenTest, WhatIsNoTokenIsRefusedAndNotShown) {
  const std::string digits(64, 'a');
  for (const std::string& text :
       {std::string(), digits.substr(1), digits + "a", digits.substr(1) + "g",
        digits.substr(0, 32) + " " + digits.substr(32), digits + "\n" + digits,
        std::string("hunter2"), std::string(64, '\0')}) {
    const auto token = Token::Parse(text);
    ASSERT_FALSE(token.ok()) << text;
    EXPECT_EQ(token.status().message(),
              "holds no token, which is 64 hexadecimal digits; make one with `muster token new`");
  }
}

}  // namespace
}  // namespace muster::rendezvous

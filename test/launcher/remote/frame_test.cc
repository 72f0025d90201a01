#include "launcher/remote/launch_wire.h"

#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

std::string Greeting() {
  return std::string(kGreeting);
}

// The next message, "-" if bytes are missing, or the error.
std::string Next(FrameReader& reader) {
  const auto message = reader.Next();
  if (!message.ok()) return std::string(message.status().message());
  return *message ? **message : "-";
}

TEST(FrameTest, MessagesComeBackHoweverTheStreamIsCut) {
  const std::string stream = Greeting() + ToFrame("one") + ToFrame("") + ToFrame("three");
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    FrameReader reader(100, /*expects_greeting=*/true);
    std::vector<std::string> messages;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      reader.Add(stream.substr(at, piece));
      while (true) {
        const auto message = reader.Next();
        ASSERT_TRUE(message.ok());
        if (!message->has_value()) break;
        messages.push_back(**message);
      }
    }
    EXPECT_EQ(messages, (std::vector<std::string>{"one", "", "three"})) << piece;
  }
}

// "My .bashrc says hello, and nothing worked any more."
TEST(FrameTest, WhatALoginShellSaysBeforeIsNoise) {
  FrameReader reader(100, /*expects_greeting=*/true);
  reader.Add("Welcome to node1!\n" + Greeting().substr(0, 5));
  EXPECT_EQ(Next(reader), "-");
  EXPECT_FALSE(reader.greeted());
  reader.Add("x" + Greeting() + ToFrame("one"));
  EXPECT_EQ(Next(reader), "one");
  EXPECT_EQ(reader.noise(), "Welcome to node1!\n" + Greeting().substr(0, 5) + "x");
}

TEST(FrameTest, StreamThatIsNoneCostsNoMemory) {
  FrameReader noisy(100, /*expects_greeting=*/true);
  std::string answer;
  for (int i = 0; i < 100 && answer != "what answers there is not Muster"; ++i) {
    noisy.Add(std::string(1024, 'x'));
    answer = Next(noisy);
  }
  EXPECT_EQ(answer, "what answers there is not Muster");

  FrameReader large(100, /*expects_greeting=*/false);
  large.Add(std::string("\x7f\xff\xff\xff", 4));
  EXPECT_EQ(Next(large), "a frame of 2147483647 bytes, where 100 are the most");
  EXPECT_EQ(Next(large), "a frame of 2147483647 bytes, where 100 are the most");
}

}  // namespace
}  // namespace muster::launcher

// A connection to a host, with shells as hosts.
#include "launcher/remote/link.h"

#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/run_until.h"
#include "test/support/temp_dir.h"

namespace muster::launcher {
namespace {

using launch::v1::Output;
using launch::v1::Up;

class LinkTest : public testing::Test {
 protected:
  LinkTest() { std::signal(SIGPIPE, SIG_IGN); }

  void Start(const std::string& script) {
    auto link = Link::Start(io_, "sh", {"sh", "-c", script}, {"PATH=/usr/bin:/bin"},
                            {.on_greeting = [this] { greeted_ = true; },
                             .on_which = [this](const std::string& machine) { machine_ = machine; },
                             .on_send = [this] { asked_to_send_ = true; },
                             .on_message = [this](const Up& up) { messages_.push_back(up); },
                             .on_end = [this](const std::string& why) { end_ = why; },
                             .has_room = [this] { return has_room_; }});
    ASSERT_TRUE(link.ok()) << link.status();
    link_ = *std::move(link);
  }

  std::string EndOf(const std::string& script) {
    end_.reset();
    Start(script);
    EXPECT_TRUE(test::RunUntil(io_, [this] { return end_.has_value(); }));
    return end_.value_or("");
  }

  // For `printf`: makes a shell write Muster's bytes.
  static std::string Octal(const std::string& bytes) {
    std::string text;
    for (const char c : bytes) {
      char code[8];
      std::snprintf(code, sizeof code, "\\%03o", static_cast<unsigned char>(c));
      text += code;
    }
    return "'" + text + "'";
  }
  static std::string Message(const std::string& data) {
    Up up;
    up.mutable_output()->set_stream(Output::STDOUT);
    up.mutable_output()->set_data(data);
    return ToFrame(up.SerializeAsString());
  }
  static std::string Greeting() { return std::string(kGreeting); }

  boost::asio::io_context io_;
  bool has_room_ = true;
  bool greeted_ = false;
  std::string machine_;
  bool asked_to_send_ = false;
  std::vector<Up> messages_;
  std::optional<std::string> end_;
  std::unique_ptr<Link> link_;
};

// "node1 was lost: ControlSocket ... already exists, disabling multiplexing."
TEST_F(LinkTest, ThatAConnectionIsNotSharedIsNoReason) {
  EXPECT_EQ(EndOf("echo 'ControlSocket /run/k already exists, disabling multiplexing' >&2; exit 3"),
            "`sh` ended with exit code 3");
  EXPECT_EQ(EndOf("echo gone >&2; echo 'mux_client_request_session: refused' >&2; exit 3"), "gone");
}

TEST_F(LinkTest, ReasonIsTheLastThatWasSaidOnStderr) {
  EXPECT_EQ(EndOf("echo a warning >&2; printf 'ssh: no route\\r\\n\\n' >&2; exit 255"),
            "ssh: no route");
}

TEST_F(LinkTest, ReasonIsWhatWasSaidInsteadOfTheGreeting) {
  EXPECT_EQ(EndOf("echo This account is currently not available.; exit 1"),
            "This account is currently not available.");
}

TEST_F(LinkTest, ReasonIsHowItEndedWhereNothingWasSaid) {
  EXPECT_EQ(EndOf("exit 3"), "`sh` ended with exit code 3");
  EXPECT_EQ(EndOf("kill -9 $$"), "`sh` was killed by SIGKILL");
}

// A link's command had started a background process, which was left behind.
TEST_F(LinkTest, WhatTheChildLeavesBehindEndsWithTheLink) {
  const std::string pid = EndOf("sleep 10000 </dev/null >/dev/null 2>&1 & echo $!");
  const pid_t left = std::stoi(pid);
  EXPECT_EQ(::kill(left, 0), 0) << "the link is still there";
  link_.reset();
  EXPECT_TRUE(test::RunUntil(io_, [left] { return !test::IsAlive(left); }));
}

// The pid that was signalled at the end of a link could have been another program's process group.
TEST_F(LinkTest, NumberOfTheChildIsNobodyElsesWhileTheLinkIsThere) {
  const pid_t child = std::stoi(EndOf("echo $$"));
  EXPECT_FALSE(test::IsAlive(child));
  EXPECT_EQ(::kill(child, 0), 0);
  link_.reset();
  EXPECT_EQ(::kill(child, 0), -1);
}

// "node3 cannot be reached: muster: which x86_64?"
TEST_F(LinkTest, ReasonIsNotWhatIsAskedForTheProgram) {
  EXPECT_EQ(EndOf("printf '\\nmuster: which x86_64?\\n\\nmuster: send\\n'; exit 7"),
            "`sh` ended with exit code 7");
  EXPECT_EQ(machine_, "x86_64");
}

TEST_F(LinkTest, WhatWasSaidBeforeTheEndIsTold) {
  EXPECT_EQ(EndOf("echo Welcome; printf " + Octal(Greeting() + Message("one") + Message("two"))),
            "Welcome");
  EXPECT_TRUE(greeted_);
  ASSERT_EQ(messages_.size(), 2u);
  EXPECT_EQ(messages_[1].output().data(), "two");
}

// While a terminal accepts nothing, nothing is read, and so nothing is buffered.
TEST_F(LinkTest, NothingIsReadWhileThereIsNoRoom) {
  has_room_ = false;
  Start("printf " + Octal(Greeting() + Message("one")) + "; cat >/dev/null");
  link_->CloseInput();
  // The child has exited or is about to: its exit is reported only after its output.
  for (int i = 0; i < 20; ++i) io_.run_one_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(messages_.empty());
  EXPECT_FALSE(end_.has_value());
  has_room_ = true;
  link_->Resume();
  EXPECT_TRUE(test::RunUntil(io_, [this] { return end_.has_value(); }));
  EXPECT_EQ(messages_.size(), 1u);
}

TEST_F(LinkTest, StreamThatMakesNoSenseIsTheEnd) {
  EXPECT_EQ(EndOf("printf " + Octal(Greeting() + "\x7f\xff\xff\xff") + "; exec sleep 10000"),
            "a frame of 2147483647 bytes, where 1048576 are the most");
}

TEST_F(LinkTest, ProgramIsSentWhenItIsAskedFor) {
  Start(
      "printf '\\nmuster: which x86_64?\\n'; read -r hash; printf '\\nmuster: send\\n'; "
      "read -r size; echo \"$hash $(head -c \"$size\" | wc -c)\" >&2");
  ASSERT_TRUE(test::RunUntil(io_, [this] { return !machine_.empty(); }));
  EXPECT_EQ(machine_, "x86_64");
  EXPECT_FALSE(asked_to_send_);
  link_->Answer("1234");
  ASSERT_TRUE(test::RunUntil(io_, [this] { return asked_to_send_; }));
  link_->SendProgram(std::make_shared<const std::string>(1'000'000, 'x'));
  ASSERT_TRUE(test::RunUntil(io_, [this] { return end_.has_value(); }));
  EXPECT_EQ(*end_, "1234 1000000");
}

}  // namespace
}  // namespace muster::launcher

// Streams: who is told what is published, and what becomes of those that do not read. What is asked
// and answered once is tested with /healthz (test/launcher/run/health_server_test.cc).
#include "rendezvous/net/http_server.h"

#include <malloc.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include "absl/strings/str_cat.h"
#include "test/support/run_until.h"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// More than sockets hold.
const std::string kLarge(8 << 20, 'x');

class HttpStreamTest : public testing::Test {
 protected:
  HttpStreamTest() {
    auto server =
        HttpServer::Open(io_, {"127.0.0.1", 0}, "the test", [this](const HttpRequest& request) {
          if (request.path == "/later") return Later(request);
          return HttpAnswer{.type = "text/event-stream",
                            .body = (request.path == "/large"  ? kLarge
                                     : request.path == "/host" ? "for " + request.host + " "
                                                               : "") +
                                    "now\n",
                            .headers = {},
                            .is_stream = true,
                            .topic = request.path};
        });
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  struct Reader {
    explicit Reader(boost::asio::io_context& io) : socket(io) {}
    tcp::socket socket;
    std::string text;
    bool ended = false;

    // Takes what is there.
    const std::string& Read() {
      char bytes[65536];
      for (;;) {
        boost::system::error_code error;
        const std::size_t got = socket.read_some(boost::asio::buffer(bytes), error);
        text.append(bytes, got);
        if (error == boost::asio::error::would_block) return text;
        if (error) {
          ended = true;
          return text;
        }
      }
    }
  };

  std::unique_ptr<Reader> Ask(const std::string& path, const char* from = "127.0.0.1",
                              const std::string& host = "a") {
    auto reader = std::make_unique<Reader>(io_);
    reader->socket.open(tcp::v4());
    reader->socket.bind({boost::asio::ip::make_address(from), 0});
    reader->socket.connect({boost::asio::ip::make_address("127.0.0.1"), server_->port()});
    reader->socket.non_blocking(true);
    reader->socket.send(
        boost::asio::buffer("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n"));
    return reader;
  }
  std::unique_ptr<Reader> Watch(const std::string& path, const char* from = "127.0.0.1") {
    auto reader = Ask(path, from);
    EXPECT_TRUE(test::RunUntil(io_, [&] { return reader->Read().ends_with("now\n"); }));
    return reader;
  }
  void Publish(const std::string& topic, const std::string& text) {
    server_->Publish(topic, std::make_shared<const std::string>(text));
  }

  HttpAnswer Later(const HttpRequest& request) {
    query_ = request.query;
    HttpAnswer answer{.headers = {}};
    answer.later = [this](HttpAnswer::Reply reply) {
      reply_ = std::move(reply);
      auto held = std::make_shared<int>();
      held_ = held;
      return held;
    };
    return answer;
  }

  boost::asio::io_context io_;
  std::unique_ptr<HttpServer> server_;
  std::string query_;
  HttpAnswer::Reply reply_;
  std::weak_ptr<void> held_;
};

TEST_F(HttpStreamTest, AnswerMayComeLater) {
  const auto asks = Ask("/later?a=1&b");
  ASSERT_TRUE(test::RunUntil(io_, [this] { return reply_ != nullptr; }));
  EXPECT_EQ(query_, "a=1&b");
  EXPECT_FALSE(held_.expired());
  const auto other = Watch("/meanwhile");
  EXPECT_EQ(asks->Read(), "");
  reply_({.body = "late\n", .headers = {}});
  reply_({.body = "twice\n", .headers = {}});
  ASSERT_TRUE(test::RunUntil(io_, [&] { return asks->Read().ends_with("\r\n\r\nlate\n"); }));
  EXPECT_TRUE(held_.expired());
}

// A process without a token kept 64 of 100 readers out, behind a proxy: it connected, said nothing,
// and did so again whenever it was dropped.
TEST_F(HttpStreamTest, WhoHasAskedIsServedHoweverManyHaveNot) {
  const auto waits = Ask("/later");
  ASSERT_TRUE(test::RunUntil(io_, [&] { return reply_ != nullptr; }));
  const auto connect = [&](const std::string& says) {
    auto stranger = std::make_unique<Reader>(io_);
    stranger->socket.connect({boost::asio::ip::make_address("127.0.0.1"), server_->port()});
    stranger->socket.non_blocking(true);
    stranger->socket.send(boost::asio::buffer(says));
    return stranger;
  };
  std::vector<std::unique_ptr<Reader>> strangers;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 100; ++i) strangers.push_back(connect(i % 2 == 0 ? "" : "GET / HTT"));
    for (int i = 0; i < 10; ++i) {
      const auto reader = Ask("/gone", "127.0.0.1");
      EXPECT_TRUE(test::RunUntil(io_, [&] { return reader->Read().ends_with("now\n"); }));
      strangers.push_back(connect(""));
    }
    strangers.clear();
  }
  EXPECT_FALSE(held_.expired());
  reply_({.status = 200, .body = "here\n", .headers = {}});
  EXPECT_TRUE(test::RunUntil(io_, [&] { return waits->Read().ends_with("here\n"); }));
}

TEST_F(HttpStreamTest, WhoWaitsForAnAnswerNeverMakesRoom) {
  std::vector<HttpAnswer::Reply> replies;
  std::vector<std::unique_ptr<Reader>> all;
  while (replies.size() < 64) {
    reply_ = nullptr;
    all.push_back(Ask("/later"));
    ASSERT_TRUE(test::RunUntil(io_, [&] { return reply_ != nullptr; }));
    replies.push_back(reply_);
  }
  const auto one_more = Ask("/later");
  ASSERT_TRUE(test::RunUntil(io_, [&] { return (one_more->Read(), one_more->ended); }));
  EXPECT_EQ(one_more->text, "");
  for (const auto& reply : replies) reply({.status = 200, .body = "here\n", .headers = {}});
  for (const auto& reader : all) {
    EXPECT_TRUE(test::RunUntil(io_, [&] { return reader->Read().ends_with("here\n"); }));
  }
}

TEST_F(HttpStreamTest, AnswerThatDoesNotComeIsNotWaitedForLong) {
  const auto asks = Ask("/later");
  ASSERT_TRUE(test::RunUntil(io_, [&] { return asks->Read().starts_with("HTTP/1.1 504 "); }));
  EXPECT_TRUE(held_.expired());
  reply_({.body = "too late\n", .headers = {}});
}

TEST_F(HttpStreamTest, AnswerThatIsAwaitedEndsWithTheServer) {
  const auto asks = Ask("/later");
  ASSERT_TRUE(test::RunUntil(io_, [this] { return reply_ != nullptr; }));
  server_.reset();
  EXPECT_TRUE(held_.expired());
  reply_({.body = "too late\n", .headers = {}});
}

TEST_F(HttpStreamTest, WhoWatchesIsToldWhatIsPublishedOnHisTopic) {
  const auto alice = Watch("/alice");
  const auto bob = Watch("/bob");
  EXPECT_THAT(alice->text, StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"));
  EXPECT_THAT(alice->text, Not(HasSubstr("Content-Length")));
  EXPECT_TRUE(test::RunUntil(io_, [&] { return server_->Topics().size() == 2; }));
  Publish("/alice", "first\n");
  ASSERT_TRUE(test::RunUntil(io_, [&] { return alice->Read().ends_with("first\n"); }));
  Publish("/alice", "second\n");
  Publish("/bob", "his\n");
  ASSERT_TRUE(test::RunUntil(io_, [&] { return alice->Read().ends_with("second\n"); }));
  ASSERT_TRUE(test::RunUntil(io_, [&] { return bob->Read().ends_with("his\n"); }));
  EXPECT_THAT(bob->text, Not(HasSubstr("first")));
}

// "One browser tab that was put aside held up the page of everybody else."
TEST_F(HttpStreamTest, WhoDoesNotReadIsToldTheLastOfItAndNobodyWaitsForHim) {
  const auto slow = Watch("/slow");
  const auto quick = Watch("/quick");
  EXPECT_TRUE(test::RunUntil(io_, [&] { return server_->Topics().size() == 2; }));
  const std::string large(8 << 20, 'x');
  for (int i = 0; i < 10; ++i) {
    const std::string end = "end " + std::to_string(i) + "\n";
    Publish("/slow", large + end);
    Publish("/quick", large + end);
    ASSERT_TRUE(test::RunUntil(io_, [&] { return quick->Read().ends_with(end); })) << i;
    quick->text.clear();
  }
  ASSERT_TRUE(test::RunUntil(io_, [&] { return slow->Read().ends_with("end 9\n"); }));
  EXPECT_LT(slow->text.size(), 3 * large.size()) << "what it had begun to get, and the last";
}

// "The page showed a job as running that had long ended, until another job changed."
TEST_F(HttpStreamTest, WhatIsPublishedWhileTheAnswerGoesOutIsNotMissed) {
  const auto reader = Ask("/large");
  ASSERT_TRUE(test::RunUntil(io_, [&] { return reader->socket.available() > 0; }));
  Publish("/large", "news\n");
  EXPECT_TRUE(test::RunUntil(io_, [&] { return reader->Read().ends_with("news\n"); }));
  EXPECT_THAT(reader->text, HasSubstr("xnow\nnews\n"));
}

// 64 open pages of a large job took 64 times its text of the daemon's memory, for as long as they
// were open.
TEST_F(HttpStreamTest, AnswerThatHasGoneOutTakesNoMemory) {
  const auto used = [] {
    const struct mallinfo2 info = ::mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  const std::size_t before = used();
  std::vector<std::unique_ptr<Reader>> readers;
  for (int i = 0; i < 8; ++i) {
    readers.push_back(Watch("/large"));
    std::string().swap(readers.back()->text);
  }
  // A client that is told what was published has been sent its whole answer.
  Publish("/large", "news\n");
  for (const auto& reader : readers) {
    ASSERT_TRUE(test::RunUntil(io_, [&] { return reader->Read().ends_with("news\n"); }));
  }
  EXPECT_LT(used(), before + 2 * kLarge.size());
}

TEST_F(HttpStreamTest, WhoHasGoneIsForgotten) {
  auto reader = Watch("/a");
  EXPECT_TRUE(test::RunUntil(io_, [&] { return server_->Topics().size() == 1; }));
  reader.reset();
  EXPECT_TRUE(test::RunUntil(io_, [&] { return server_->Topics().empty(); }));
  Publish("/a", "nobody\n");
}

TEST_F(HttpStreamTest, WhomARequestIsForIsWithoutItsPort) {
  for (const auto& [asked, for_whom] :
       {std::pair("a:9400", "a"), std::pair("[::1]:9400", "[::1]"), std::pair("[::1]", "[::1]"),
        std::pair("10.0.0.1", "10.0.0.1")}) {
    const auto reader = Ask("/host", "127.0.0.1", asked);
    EXPECT_TRUE(test::RunUntil(io_, [&] { return reader->Read().ends_with("now\n"); }));
    EXPECT_THAT(reader->text, HasSubstr(absl::StrCat("for ", for_whom, " now")));
  }
}

TEST_F(HttpStreamTest, StreamsOfOneHostMakeRoomForOneAnother) {
  const auto other = Watch("/a", "127.0.0.2");
  std::vector<std::unique_ptr<Reader>> many;
  for (int i = 0; i < 70; ++i) many.push_back(Watch("/a"));
  EXPECT_TRUE(test::RunUntil(io_, [&] {
    many.front()->Read();
    return many.front()->ended;
  }));
  const auto told = [&](Reader& reader) {
    return test::RunUntil(io_, [&] { return reader.Read().ends_with("last\n"); });
  };
  Publish("/a", "last\n");
  EXPECT_TRUE(told(*other));
  EXPECT_TRUE(told(*many[60]));
}

TEST_F(HttpStreamTest, ServerThatEndsEndsItsStreams) {
  const auto reader = Watch("/a");
  EXPECT_TRUE(test::RunUntil(io_, [&] { return server_->Topics().size() == 1; }));
  Publish("/a", std::string(8 << 20, 'x'));
  server_.reset();
  EXPECT_TRUE(test::RunUntil(io_, [&] {
    reader->Read();
    return reader->ended;
  }));
}

}  // namespace
}  // namespace muster::rendezvous

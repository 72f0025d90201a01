// Whose connection it is shows in its first byte.
#include "rendezvous/shared_port.h"

#include <string>

#include <gtest/gtest.h>
#include <boost/asio/write.hpp>

#include "rendezvous/listening_socket.h"
#include "test/support/run_until.h"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;
using test::RunUntil;

class SharedPortTest : public ::testing::Test {
 protected:
  SharedPortTest() {
    auto sockets = ListenAt(io_, {"127.0.0.1", 0});
    if (!sockets.ok()) std::abort();
    at_ = sockets->front().local_endpoint();
    port_ = std::make_unique<SharedPort>(io_, *std::move(sockets),
                                         [this](tcp::socket s) { grpc_.push_back(std::move(s)); });
  }

  tcp::socket Connect() {
    tcp::socket socket(io_);
    socket.connect(at_);
    return socket;
  }

  // What the one who took `socket` can read.
  static std::string ReadAll(tcp::socket& socket) {
    char bytes[64];
    boost::system::error_code error;
    return {bytes, socket.read_some(boost::asio::buffer(bytes), error)};
  }

  // The other end has closed it.
  static bool IsClosed(tcp::socket& socket) {
    char byte;
    boost::system::error_code error;
    socket.non_blocking(true);
    socket.read_some(boost::asio::buffer(&byte, 1), error);
    return error && error != boost::asio::error::would_block;
  }

  boost::asio::io_context io_;
  tcp::endpoint at_;
  std::vector<tcp::socket> grpc_;
  std::vector<tcp::socket> store_;
  std::unique_ptr<SharedPort> port_;
};

TEST_F(SharedPortTest, EachProtocolGetsItsConnectionsWithNothingRead) {
  port_->OnStoreConnection([this](tcp::socket s) { store_.push_back(std::move(s)); });
  tcp::socket agent = Connect();
  tcp::socket worker = Connect();
  tcp::socket old_worker = Connect();
  boost::asio::write(agent, boost::asio::buffer("PRI * HTTP/2.0", 14));
  boost::asio::write(worker, boost::asio::buffer("\0\xce\xf7\x85\x3c", 5));
  ASSERT_TRUE(RunUntil(io_, [this] { return grpc_.size() == 1 && store_.size() == 1; }));
  boost::asio::write(old_worker, boost::asio::buffer("\3", 1));
  ASSERT_TRUE(RunUntil(io_, [this] { return store_.size() == 2; }));
  EXPECT_EQ(ReadAll(grpc_[0]), "PRI * HTTP/2.0");
  EXPECT_EQ(ReadAll(store_[0]), std::string("\0\xce\xf7\x85\x3c", 5));
  EXPECT_EQ(ReadAll(store_[1]), "\3");
}

TEST_F(SharedPortTest, ConnectionThatSaysNothingIsKeptUntilItGoes) {
  port_->OnStoreConnection([this](tcp::socket s) { store_.push_back(std::move(s)); });
  tcp::socket callback = Connect();
  tcp::socket worker = Connect();
  boost::asio::write(worker, boost::asio::buffer("\3", 1));
  ASSERT_TRUE(RunUntil(io_, [this] { return store_.size() == 1; }));
  EXPECT_EQ(port_->silent(), 1u);
  callback.close();
  ASSERT_TRUE(RunUntil(io_, [this] { return port_->silent() == 0; }));
  EXPECT_TRUE(grpc_.empty());
}

TEST_F(SharedPortTest, WithoutAStoreItsClientsAreClosed) {
  tcp::socket worker = Connect();
  boost::asio::write(worker, boost::asio::buffer("\3", 1));
  EXPECT_TRUE(RunUntil(io_, [&] { return IsClosed(worker); }));
  EXPECT_EQ(port_->silent(), 0u);
}

TEST_F(SharedPortTest, WhatWaitsIsClosedWithThePort) {
  tcp::socket silent = Connect();
  ASSERT_TRUE(RunUntil(io_, [this] { return port_->silent() == 1; }));
  port_.reset();
  EXPECT_TRUE(IsClosed(silent));
}

}  // namespace
}  // namespace muster::rendezvous

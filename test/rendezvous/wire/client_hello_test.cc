// What is parsed of a ClientHello before TLS begins. The bytes come from strangers.
#include "rendezvous/wire/first_byte.h"

#include <string>

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

std::string Bytes(std::size_t number, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text.push_back(static_cast<char>(number >> (8 * i)));
  return text;
}

// A length in `bytes` bytes, followed by `body`.
std::string Vector(const std::string& body, int bytes) {
  return Bytes(body.size(), bytes) + body;
}

std::string Extension(int kind, const std::string& body) {
  return Bytes(kind, 2) + Vector(body, 2);
}

std::string Hello(const std::string& extensions) {
  const std::string body = Bytes(0x0303, 2) + std::string(32, 'r') + Vector("session", 1) +
                           Vector(Bytes(0x1301, 2), 2) + Vector(std::string(1, '\0'), 1) +
                           Vector(extensions, 2);
  return Bytes(0x160301, 3) + Vector(Bytes(1, 1) + Vector(body, 3), 2);
}

std::string Names(const std::string& host) {
  return Extension(0, Vector(Bytes(7, 1) + Vector("other", 2) + Bytes(0, 1) + Vector(host, 2), 2));
}

TEST(ClientHelloTest, TheNameIsFoundAmongOtherExtensions) {
  const std::string name = "muster-0123456789abcdef";
  const std::string hello = Hello(Extension(43, "x") + Names(name) + Extension(51, "share"));
  EXPECT_EQ(ServerNameIn(hello), name);
  EXPECT_EQ(TlsRecordBytes(hello), hello.size());
  EXPECT_EQ(TlsRecordBytes(hello.substr(0, kTlsHeaderBytes)), hello.size());
}

TEST(ClientHelloTest, WhoAsksForNobodyHasNoName) {
  EXPECT_EQ(ServerNameIn(Hello("")), "");
  EXPECT_EQ(ServerNameIn(Hello(Extension(43, "x"))), "");
  EXPECT_EQ(ServerNameIn(Hello(Extension(0, ""))), "");
  EXPECT_EQ(ServerNameIn("\x16"), "");
  EXPECT_EQ(ServerNameIn(""), "");
}

TEST(ClientHelloTest, WhateverIsCutOffOrChangedIsReadWithinItsBytes) {
  const std::string hello = Hello(Names("name"));
  for (std::size_t size = 0; size < hello.size(); ++size) {
    EXPECT_EQ(ServerNameIn(hello.substr(0, size)), "") << size;
  }
  for (std::size_t at = 0; at < hello.size(); ++at) {
    for (const char byte : {'\0', '\xff'}) {
      std::string changed = hello;
      changed[at] = byte;
      EXPECT_LE(ServerNameIn(changed).size(), changed.size());
    }
  }
}

TEST(ClientHelloTest, ARecordThatMayNotBeginAConnectionHasNoSize) {
  EXPECT_EQ(TlsRecordBytes(std::string("\x16\x03\x01\x02", 4)), std::nullopt);
  EXPECT_EQ(TlsRecordBytes(std::string("\x17\x03\x01\x02\x00", 5)), 0u);
  EXPECT_EQ(TlsRecordBytes(std::string("\x16\x03\x01\x00\x00", 5)), 0u);
  EXPECT_EQ(TlsRecordBytes(std::string("\x16\x03\x01\xff\xff", 5)), 0u);
  EXPECT_EQ(TlsRecordBytes(std::string("\x16\x03\x01\x41\x00", 5)), kMostTlsRecordBytes);
}

}  // namespace
}  // namespace muster::rendezvous

// The kernel's socket table as text, and finding a real socket in it.
#include "worker/hang/process_evidence.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace muster::worker {
namespace {

TEST(SocketTableTest, ReadsBothFamilies) {
  SocketTable table;
  ParseSocketTable(
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
      "inode\n"
      "   0: 0100007F:7544 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 "
      "4711 1 0000000000000000 100 0 0 10 0\n"
      "   1: 0200000A:C350 0100000A:7544 01 00000010:00001000 01:00000014 00000000     0        0 "
      "4712 2 0000000000000000 20 4 30 10 -1\n"
      "   2: 0200000A:C351 0100000A:7544 06 00000000:00000000 03:00001000 00000000     0        0 "
      "0 3 0000000000000000\n",
      &table);
  ParseSocketTable(
      "   0: 00000000000000000000000001000000:1F90 00000000000000000000000001000000:9C40 08 "
      "00000000:00000001 00:00000000 00000000     0        0 4713 1 0000000000000000 20 4 30 10 "
      "-1\n",
      &table);
  ASSERT_EQ(table.size(), 3u) << "a socket without a process is left out";
  EXPECT_EQ(Describe(table[4711]), "LISTEN 127.0.0.1:30020");
  EXPECT_EQ(Describe(table[4712]),
            "ESTABLISHED 10.0.0.2:50000 -> 10.0.0.1:30020, to send 16, to read 4096");
  EXPECT_EQ(Describe(table[4713]), "CLOSE_WAIT [::1]:8080 -> [::1]:40000, to send 0, to read 1");
}

TEST(SocketTableTest, GarbageIsPassedOver) {
  SocketTable table;
  ParseSocketTable(
      "\n0: x\n0: 01:02 03:04 05 06:07 8 9 10 11\n"
      "0: 0100007F:7544 0100007F:FFFFFFFFFFFFFFFFF 01 0:0 0 0 0 0 4711 1\n"
      "0: 010000ZF:7544 0100007F:1 01 0:0 0 0 0 0 4711 1\n",
      &table);
  EXPECT_TRUE(table.empty());
}

TEST(SocketTableTest, FindsARealSocketWithWhatItHasNotRead) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const int client = ::socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(::connect(client, reinterpret_cast<sockaddr*>(&address), size), 0);
  const int server = ::accept(listener, nullptr, nullptr);
  ASSERT_EQ(::send(client, "hello", 5, 0), 5);
  char byte;
  ASSERT_EQ(::recv(server, &byte, 1, MSG_PEEK), 1) << "it has arrived";

  struct stat info;
  ASSERT_EQ(::fstat(server, &info), 0);
  SocketTable table = ReadSocketTable(::getpid());
  ASSERT_TRUE(table.contains(info.st_ino));
  const SocketInfo& found = table[info.st_ino];
  EXPECT_EQ(found.state, "ESTABLISHED");
  EXPECT_EQ(found.local, "127.0.0.1:" + std::to_string(ntohs(address.sin_port)));
  EXPECT_EQ(found.receive_queue, 5u);
  for (const int fd : {server, client, listener}) ::close(fd);
}

}  // namespace
}  // namespace muster::worker

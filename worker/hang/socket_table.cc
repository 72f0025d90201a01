#include "worker/hang/socket_table.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace muster::worker {
namespace {

// Fields of a line, counted from "0:".
enum Field : std::size_t { kLocal = 1, kRemote = 2, kState = 3, kQueues = 4, kInode = 9 };

// include/net/tcp_states.h
constexpr const char* kStates[] = {
    "?",     "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2",   "TIME_WAIT",
    "CLOSE", "CLOSE_WAIT",  "LAST_ACK", "LISTEN",   "CLOSING",   "NEW_SYN_RECV"};
constexpr const char kListen[] = "LISTEN";

// "0100007F:7544": words of four bytes, each printed as a number of this machine, and the port.
std::optional<std::string> ParseAddress(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  std::uint64_t port = 0;
  if (parts.size() != 2 || !absl::SimpleHexAtoi(parts[1], &port)) return std::nullopt;
  if (parts[0].size() != 8 && parts[0].size() != 32) return std::nullopt;
  in6_addr address = {};
  for (std::size_t word = 0; word < parts[0].size() / 8; ++word) {
    std::uint32_t value = 0;
    if (!absl::SimpleHexAtoi(parts[0].substr(8 * word, 8), &value)) return std::nullopt;
    std::memcpy(address.s6_addr + 4 * word, &value, sizeof value);
  }
  char name[INET6_ADDRSTRLEN];
  const bool is_v4 = parts[0].size() == 8;
  if (is_v4) {
    ::inet_ntop(AF_INET, &address, name, sizeof name);
    return absl::StrCat(name, ":", port);
  }
  ::inet_ntop(AF_INET6, &address, name, sizeof name);
  return absl::StrCat("[", name, "]:", port);
}

void ParseLine(absl::string_view line, SocketTable* table) {
  const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ', absl::SkipEmpty());
  if (fields.size() <= kInode) return;
  const std::vector<absl::string_view> queues = absl::StrSplit(fields[kQueues], ':');
  const std::optional<std::string> local = ParseAddress(fields[kLocal]);
  const std::optional<std::string> remote = ParseAddress(fields[kRemote]);
  SocketInfo socket;
  unsigned state = 0;
  std::uint64_t inode = 0;
  if (!local.has_value() || !remote.has_value() || queues.size() != 2 ||
      !absl::SimpleHexAtoi(fields[kState], &state) ||
      !absl::SimpleHexAtoi(queues[0], &socket.send_queue) ||
      !absl::SimpleHexAtoi(queues[1], &socket.receive_queue) ||
      !absl::SimpleAtoi(fields[kInode], &inode) || inode == 0) {
    return;
  }
  socket.local = *local;
  socket.remote = *remote;
  socket.state = state < std::size(kStates) ? kStates[state] : kStates[0];
  table->insert_or_assign(inode, std::move(socket));
}

}  // namespace

void ParseSocketTable(std::string_view text, SocketTable* table) {
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    ParseLine(line, table);
  }
}

SocketTable ReadSocketTable(pid_t pid) {
  SocketTable table;
  for (const char* family : {"tcp", "tcp6"}) {
    std::ifstream file(absl::StrCat("/proc/", pid, "/net/", family));
    std::ostringstream text;
    text << file.rdbuf();
    ParseSocketTable(text.str(), &table);
  }
  return table;
}

std::string Describe(const SocketInfo& socket) {
  if (socket.state == kListen) return absl::StrCat(socket.state, " ", socket.local);
  return absl::StrCat(socket.state, " ", socket.local, " -> ", socket.remote, ", to send ",
                      socket.send_queue, ", to read ", socket.receive_queue);
}

}  // namespace muster::worker

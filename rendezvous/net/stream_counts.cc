#include "rendezvous/net/stream_counts.h"

#include <memory>
#include <string>
#include <string_view>

#include <grpc/grpc.h>
#include <grpc/support/alloc.h>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "rendezvous/net/host_address.h"
#include "rendezvous/wire/peer.h"

namespace muster::rendezvous {
namespace {

using nlohmann::json;

constexpr std::intptr_t kAtOnce = 1000;

// What channelz has answered; null when it knows nothing of that.
json Parse(char* text) {
  const std::unique_ptr<char, decltype(&gpr_free)> owned(text, &gpr_free);
  if (text == nullptr) return nullptr;
  return json::parse(text, nullptr, /*allow_exceptions=*/false);
}

// Numbers are text in it, as protobuf writes those of 64 bits. 0: not there.
std::int64_t Number(const json& object, const char* name) {
  std::int64_t number = 0;
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return 0;
  return absl::SimpleAtoi(found->get_ref<const std::string&>(), &number) ? number : 0;
}

// "chttp2 ipv4:10.0.0.7:51234"
std::optional<StreamCounts::Endpoint> PeerOf(const json& reference) {
  const auto name = reference.find("name");
  if (name == reference.end() || !name->is_string()) return std::nullopt;
  const std::string_view text = name->get_ref<const std::string&>();
  return HostEndpoint(ParsePeer(text.substr(text.find(' ') + 1)));
}

// Calls `take` with each reference of all pages, which begin behind the last id of the one before.
template <typename ReadPage, typename Take>
void ForEach(const char* list, const char* id, ReadPage read_page, Take take) {
  std::int64_t next = 0;
  for (bool end = false; !end;) {
    const json page = Parse(read_page(next));
    end = true;
    if (!page.is_object() || !page.contains(list)) return;
    for (const json& one : page[list]) {
      const json& reference = one.contains("ref") ? one["ref"] : one;
      next = Number(reference, id) + 1;
      take(Number(reference, id), reference);
    }
    end = page.value("end", false);
  }
}

}  // namespace

void StreamCounts::ReadSockets() {
  sockets_.clear();
  ForEach("server", "serverId", grpc_channelz_get_servers,
          [this](std::int64_t server, const json&) {
            ForEach(
                "socketRef", "socketId",
                [server](std::intptr_t next) {
                  return grpc_channelz_get_server_sockets(server, next, kAtOnce);
                },
                [this](Socket socket, const json& reference) {
                  if (const auto peer = PeerOf(reference)) sockets_[*peer] = socket;
                });
          });
}

std::optional<std::uint64_t> StreamCounts::Begun(const Endpoint& peer) {
  for (const bool again : {false, true}) {
    if (again) ReadSockets();
    const auto socket = sockets_.find(peer);
    if (socket == sockets_.end()) continue;
    const json read = Parse(grpc_channelz_get_socket(socket->second));
    // Its port may have come to another connection since.
    if (!read.is_object() || !read.contains("socket") || PeerOf(read["socket"]["ref"]) != peer) {
      sockets_.erase(socket);
      continue;
    }
    return static_cast<std::uint64_t>(Number(read["socket"]["data"], "streamsStarted"));
  }
  return std::nullopt;
}

}  // namespace muster::rendezvous

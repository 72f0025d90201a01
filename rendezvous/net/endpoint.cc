#include "rendezvous/net/endpoint.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster::rendezvous {
namespace {

constexpr absl::string_view kHowToWrite = "write HOST:PORT, with brackets around an IPv6 address";

bool IsHostCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == ':' ||
         c == '-';
}

// The host without brackets; `how_to_write` ends the sentence about one that is wrong.
absl::StatusOr<std::string> HostIn(absl::string_view text, absl::string_view how_to_write) {
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
    text = text.substr(1, text.size() - 2);
  }
  if (text.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("has no host; ", how_to_write));
  }
  for (const char c : text) {
    if (!IsHostCharacter(c)) {
      return absl::InvalidArgumentError(absl::StrCat("has a bad host; ", how_to_write));
    }
  }
  return std::string(text);
}

// Null for a name.
std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> NumericAddress(const std::string& host) {
  addrinfo numeric = {};
  numeric.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &numeric, &found) != 0) found = nullptr;
  return {found, ::freeaddrinfo};
}

// The IP address in `host`, an IPv4 address mapped to IPv6; nullopt for a name.
std::optional<in6_addr> AddressOf(const std::string& host) {
  const auto found = NumericAddress(host);
  if (found == nullptr) return std::nullopt;
  if (found->ai_family == AF_INET6) {
    return reinterpret_cast<const sockaddr_in6*>(found->ai_addr)->sin6_addr;
  }
  in6_addr mapped = {};
  mapped.s6_addr[10] = mapped.s6_addr[11] = 0xff;
  std::memcpy(mapped.s6_addr + 12, &reinterpret_cast<const sockaddr_in*>(found->ai_addr)->sin_addr,
              sizeof(in_addr));
  return mapped;
}

}  // namespace

absl::StatusOr<std::uint16_t> ParsePort(absl::string_view text) {
  // SimpleAtoi alone would take "+1" and " 1".
  std::uint32_t port = 0;
  if (text.empty() || text.size() > 5 || !absl::ascii_isdigit(text.front()) ||
      !absl::SimpleAtoi(text, &port) || port > 65535) {
    return absl::InvalidArgumentError("has a bad port; a port is a number from 0 to 65535");
  }
  return static_cast<std::uint16_t>(port);
}

absl::StatusOr<Endpoint> ParseLocalEndpoint(absl::string_view text) {
  if (absl::c_any_of(text, [](char c) { return !absl::ascii_isdigit(c); }) || text.empty()) {
    return ParseEndpoint(text, std::nullopt);
  }
  const auto port = ParsePort(text);
  if (!port.ok()) return port.status();
  return Endpoint{"127.0.0.1", *port};
}

absl::StatusOr<std::string> ParseHost(absl::string_view text) {
  return HostIn(text, "write a name or an IP address");
}

absl::StatusOr<Endpoint> ParseEndpoint(absl::string_view text,
                                       std::optional<std::uint16_t> default_port) {
  text = absl::StripAsciiWhitespace(text);
  Endpoint endpoint;
  absl::string_view host = text;
  const std::size_t colon = text.rfind(':');
  const bool only_brackets = !text.empty() && text.front() == '[' && text.back() == ']';
  if (colon != absl::string_view::npos && !only_brackets) {
    host = text.substr(0, colon);
    // "::1" would be host ":" and port 1; torchrun reads it that way, and then never connects.
    if (!host.empty() && host.back() == ':') {
      return absl::InvalidArgumentError(absl::StrCat("has a bad host; ", kHowToWrite));
    }
    const auto port = ParsePort(text.substr(colon + 1));
    if (!port.ok()) return port.status();
    endpoint.port = *port;
  } else if (default_port.has_value()) {
    endpoint.port = *default_port;
  } else {
    return absl::InvalidArgumentError(absl::StrCat("has no port; ", kHowToWrite));
  }
  auto parsed = HostIn(host, kHowToWrite);
  if (!parsed.ok()) return parsed.status();
  endpoint.host = *std::move(parsed);
  return endpoint;
}

absl::StatusOr<Endpoint> ParseEndpoints(absl::string_view text,
                                        std::optional<std::uint16_t> default_port) {
  std::optional<Endpoint> all;
  for (const absl::string_view each : absl::StrSplit(text, ',')) {
    auto endpoint = ParseEndpoint(each, default_port);
    if (!endpoint.ok()) return endpoint.status();
    if (!all) {
      all = *std::move(endpoint);
    } else if (all->port == 0 || endpoint->port == 0) {
      return absl::InvalidArgumentError("has several endpoints, one of them with port 0");
    } else {
      all->standbys.push_back(*std::move(endpoint));
    }
  }
  return *std::move(all);
}

std::vector<Endpoint> EachOf(const Endpoint& endpoint) {
  std::vector<Endpoint> each = {{endpoint.host, endpoint.port}};
  each.insert(each.end(), endpoint.standbys.begin(), endpoint.standbys.end());
  return each;
}

bool IsLoopbackLiteral(const std::string& host) {
  if (host == "localhost") return true;
  const auto found = NumericAddress(host);
  if (found == nullptr) return false;
  if (found->ai_family == AF_INET) {
    const auto* const v4 = reinterpret_cast<const sockaddr_in*>(found->ai_addr);
    return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  const auto* const v6 = reinterpret_cast<const sockaddr_in6*>(found->ai_addr);
  return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

std::string ToString(const Endpoint& endpoint) {
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  std::string text = v6 ? absl::StrCat("[", endpoint.host, "]:", endpoint.port)
                        : absl::StrCat(endpoint.host, ":", endpoint.port);
  for (const Endpoint& standby : endpoint.standbys) absl::StrAppend(&text, ",", ToString(standby));
  return text;
}

std::string WhyNobodyConnects(const std::string& host) {
  const std::optional<in6_addr> address = AddressOf(host);
  if (!address) return "";
  bool is_any = IN6_IS_ADDR_UNSPECIFIED(&*address);
  bool is_many = IN6_IS_ADDR_MULTICAST(&*address);
  if (IN6_IS_ADDR_V4MAPPED(&*address)) {
    std::uint32_t v4 = 0;
    std::memcpy(&v4, address->s6_addr + 12, sizeof v4);
    v4 = ntohl(v4);
    is_any = v4 == INADDR_ANY;
    is_many = IN_MULTICAST(v4) || v4 == INADDR_BROADCAST;
  }
  if (is_any) return "is the wildcard address, which cannot be connected to";
  return is_many ? "is a multicast or broadcast address, which cannot be connected to" : "";
}

}  // namespace muster::rendezvous

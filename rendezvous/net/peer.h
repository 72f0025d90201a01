// The address of the other end of a connection, in gRPC's notation.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace muster::rendezvous {

struct Peer {
  std::string address;  // "10.0.0.7", "fe80::1"; empty: it has no IP address
  std::uint16_t port = 0;
};

// "ipv4:10.0.0.7:51234", "ipv6:[fe80::1]:51234", the brackets percent-encoded or not.
Peer ParsePeer(std::string_view text);

// Makes host addresses from text, the kernel and gRPC comparable.

// A canonical form: an IPv4 address mapped into IPv6 becomes the IPv4 address, and the zone of a
// link-local address, which names a local interface, is dropped.
boost::asio::ip::address HostAddress(const boost::asio::ip::address& address);

// The same from text; nullopt if it is not a numeric address.
std::optional<boost::asio::ip::address> ParseHostAddress(const std::string& text);

// What counts as one host: an IPv4 address, or the /64 of an IPv6 address, which a single host may
// own. Takes an address in the form of HostAddress.
boost::asio::ip::address HostLine(const boost::asio::ip::address& address);

// HostAddress, with the port kept.
boost::asio::ip::tcp::endpoint HostEndpoint(const boost::asio::ip::tcp::endpoint& endpoint);

// nullopt: it has no IP address.
std::optional<boost::asio::ip::tcp::endpoint> HostEndpoint(const Peer& peer);

// Who owns the other end of a connection, if it is on this machine.

enum class PeerOwner {
  kElsewhere,  // on another machine
  kOurs,       // a process of this process' user, or of root
  kOthers,     // a process of another user, or one that has closed it
  kUnknown,    // the kernel does not say: sock_diag is missing or forbidden
};

// Asks the kernel (man 7 sock_diag) about the other end of a TCP connection; a few microseconds. An
// end with this end's own address, or a loopback address, is on this machine. One in another
// network namespace cannot be found and counts as another user's: it came through an address of
// this machine, and its sender is unknown.
//
// For kOthers, `*user` is the owner, or -1 if it is closed or not found.
PeerOwner OwnerOfPeer(int fd, uid_t* user);

// Which processes of this machine may use a store.

// Admits processes of this process' user and of root (OwnerOfPeer). Lives on the loop's thread.
class OwnUsers {
 public:
  // `remedy`: how to admit other users; logged with the first refusal.
  explicit OwnUsers(std::string remedy) : remedy_(std::move(remedy)) {}

  // True for another machine, and for processes of those users. Logs the first refusal.
  bool Allow(boost::asio::ip::tcp::socket& connection);

 private:
  const std::string remedy_;
  bool told_ = false;
};

}  // namespace muster::rendezvous

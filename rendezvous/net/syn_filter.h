// Has the kernel drop what begins a connection, from some hosts.
#pragma once

#include <vector>

#include <boost/asio/ip/address.hpp>

namespace muster::rendezvous {

// From now on, the kernel drops TCP's SYN packets (RFC 9293, section 3.1) that come from these
// hosts to these listening sockets, before it knows of a connection; their clients try again after
// 1, 3, 7 seconds, as for any packet that was lost. Nobody: every host may connect. Connections
// that are there already, and those accepted later, are left alone. Needs no privilege: a classic
// BPF program at the socket (socket(7), SO_ATTACH_FILTER; Linux's
// Documentation/networking/filter.rst).
//
// `hosts` as HostLine makes them: of an IPv6 address the first half counts. False: the kernel does
// not do it, and errno says why.
bool DropSynsFrom(const std::vector<boost::asio::ip::address>& hosts,
                  const std::vector<int>& listening_fds);

}  // namespace muster::rendezvous

// The network interface that Gloo must be told to use, where it would choose a wrong one.
#pragma once

#include <optional>
#include <string>

namespace muster::launcher {

// Gloo listens where this machine's own name leads, and on loopback where that is no interface's
// address (torch/csrc/distributed/c10d/ProcessGroupGloo.cpp, createDefaultDevice): other nodes
// cannot connect to it then. So it is with the 127.0.1.1 in Debian's /etc/hosts, and in containers
// whose name is nobody's.
//
// `own_name` is this machine's name, `address` what the other nodes reach it by. Nothing: Gloo
// needs no help, or the job's nodes are all on this machine. Else the name of the interface that
// has `address`; empty when none has, as when that is itself a name which leads to loopback here.
// May wait for DNS.
std::optional<std::string> InterfaceForGloo(const std::string& own_name,
                                            const std::string& address);

}  // namespace muster::launcher

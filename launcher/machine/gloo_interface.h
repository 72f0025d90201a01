// The network interface that Gloo must be told to use, where it would choose the wrong one.
#pragma once

#include <optional>
#include <string>

namespace muster::launcher {

// Gloo listens at the address to which this machine's own name resolves, or on loopback if no
// interface has that address (torch/csrc/distributed/c10d/ProcessGroupGloo.cpp,
// createDefaultDevice); other nodes then cannot connect to it. That happens with the 127.0.1.1 in
// Debian's /etc/hosts, and in containers whose name does not resolve.
//
// `own_name` is this machine's name, `address` what the other nodes reach it by. nullopt: Gloo
// needs no help, or the job's nodes are all on this machine. Otherwise the name of the interface
// that has `address`; empty when none has it, for example when `address` is itself a name that
// resolves to loopback here. May wait for DNS.
std::optional<std::string> InterfaceForGloo(const std::string& own_name,
                                            const std::string& address);

}  // namespace muster::launcher

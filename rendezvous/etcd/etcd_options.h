// Where an etcd is, and how it is spoken to.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace muster::rendezvous::etcd {

struct EtcdOptions {
  // "HOST:PORT" of its members.
  std::vector<std::string> members;
  // PEM. With an authority the connections are encrypted, and members have to have its certificate;
  // certificate and key are this daemon's (etcd's --client-cert-auth), or both empty.
  std::string authority;
  std::string certificate;
  std::string key;
  // Of etcd's own users; empty: it has none.
  std::string user;
  std::string password;
  // For one member to answer before the next is asked; about a lease half as long, as that needs no
  // disk and cannot wait. A transaction waits up to eight times as long where no member answers in
  // time.
  std::chrono::milliseconds patience = std::chrono::seconds(1);
};

}  // namespace muster::rendezvous::etcd

// Why a connection to the daemon ended, whatever it was made of.
#pragma once

#include <string>

namespace muster::rendezvous {

struct ConnectionError {
  enum class Kind {
    kBroken,      // or it never came about
    kRefused,     // something on the way, or the daemon's machine, says that nobody listens there
    kUnresolved,  // the name could not be resolved
    kForeign,     // what answers is no Muster rendezvous
  };

  // For people: "Connection refused", "its name does not resolve: Domain name not found".
  std::string cause;
  Kind kind = Kind::kBroken;
};

}  // namespace muster::rendezvous

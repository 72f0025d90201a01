// Why a connection to the daemon ended, whatever kind it was.
#pragma once

#include <string>

namespace muster::rendezvous {

struct ConnectionError {
  enum class Kind {
    kBroken,      // or was never established
    kRefused,     // something on the way, or the daemon's machine, says that nobody listens there
    kUnresolved,  // the name could not be resolved
    kForeign,  // what answers is not a Muster rendezvous, or asks for another proof; to try again
               // would not help
  };

  // For people: "Connection refused", "its name does not resolve: Domain name not found".
  std::string cause;
  Kind kind = Kind::kBroken;
};

}  // namespace muster::rendezvous

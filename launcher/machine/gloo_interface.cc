#include "launcher/machine/gloo_interface.h"

#include "launcher/machine/local_address.h"

namespace muster::launcher {

std::optional<std::string> InterfaceForGloo(const std::string& own_name,
                                            const std::string& address) {
  if (rendezvous::IsLoopbackLiteral(address) || ResolvesToInterface(own_name)) return std::nullopt;
  const std::string local = LookAtEndpoint({address, 0}).local_address;
  return rendezvous::IsLoopbackLiteral(local) ? "" : InterfaceWith(local);
}

}  // namespace muster::launcher

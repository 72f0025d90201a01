#include "rendezvous/wire/peer.h"

#include <charconv>

namespace muster::rendezvous {

Peer ParsePeer(std::string_view text) {
  const std::size_t scheme = text.find(':');
  const std::size_t colon = text.rfind(':');
  if (scheme == std::string_view::npos || colon <= scheme) return {};
  const std::string_view address = text.substr(scheme + 1, colon - scheme - 1);
  Peer peer;
  for (std::size_t i = 0; i < address.size(); ++i) {
    if (address.substr(i, 3) == "%5B" || address.substr(i, 3) == "%5D") {
      i += 2;
    } else if (address[i] != '[' && address[i] != ']') {
      peer.address += address[i];
    }
  }
  std::from_chars(text.data() + colon + 1, text.data() + text.size(), peer.port);
  return peer;
}

}  // namespace muster::rendezvous

#include "base/random_name.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace muster::base {

std::string RandomName(int length) {
  constexpr std::string_view kCharacters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::string name(static_cast<std::size_t>(length), '\0');
  // One call for all; it fails only for more than it gives at once.
  if (::getentropy(name.data(), name.size()) != 0) std::abort();
  // The first four characters come a little more often than the rest, which costs a name nothing.
  for (char& c : name) c = kCharacters[static_cast<unsigned char>(c) % kCharacters.size()];
  return name;
}

}  // namespace muster::base

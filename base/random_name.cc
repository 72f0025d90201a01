#include "base/random_name.h"

#include <random>
#include <string_view>

namespace muster::base {

std::string RandomName(int length) {
  constexpr std::string_view kCharacters = "abcdefghijklmnopqrstuvwxyz0123456789";
  // The system's. To look for the processor's own takes a virtual machine longer than to use it.
  std::random_device device("getentropy");
  std::uniform_int_distribution<std::size_t> choice(0, kCharacters.size() - 1);
  std::string name;
  for (int i = 0; i < length; ++i) name += kCharacters[choice(device)];
  return name;
}

}  // namespace muster::base

#include "launcher/environment.h"

#include <string_view>

namespace muster::launcher {

Environment ReadEnvironment(const char* const* block) {
  Environment environment;
  for (; block != nullptr && *block != nullptr; ++block) {
    const std::string_view entry = *block;
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    environment.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return environment;
}

std::vector<std::string> ToBlock(const Environment& environment) {
  std::vector<std::string> block;
  block.reserve(environment.size());
  for (const auto& [name, value] : environment) block.push_back(name + "=" + value);
  return block;
}

std::string GetOr(const Environment& environment, const std::string& name,
                  const std::string& fallback) {
  const auto found = environment.find(name);
  return found == environment.end() || found->second.empty() ? fallback : found->second;
}

}  // namespace muster::launcher

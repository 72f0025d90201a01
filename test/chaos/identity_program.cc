// Writes a tool's TLS credentials for a token into a folder, for programs that speak TLS by hand:
// roots.pem, certificate.pem and key.pem. Prints the name that a server must prove.
//
// usage: identity_program TOKEN_FILE FOLDER [HOURS]
//
// With HOURS the certificate is issued that many hours from now, or ago.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/time/clock.h"
#include "rendezvous/identity/authority.h"
#include "rendezvous/identity/token.h"

int main(int argc, char** argv) {
  using namespace muster::rendezvous;
  if (argc != 3 && argc != 4) return 2;
  const auto token = ReadTokenFile(argv[1]);
  if (!token.ok()) {
    std::fprintf(stderr, "%s\n", token.status().ToString().c_str());
    return 1;
  }
  const Authority authority(*token);
  const Identity identity =
      authority.Issue(Role::kTool, absl::Now() + absl::Hours(argc == 4 ? std::atoi(argv[3]) : 0));
  const std::string folder = std::string(argv[2]) + "/";
  const auto write = [&](const char* name, const std::string& text) {
    return static_cast<bool>(std::ofstream(folder + name) << text << std::flush);
  };
  if (!write("roots.pem", identity.roots) || !write("key.pem", identity.key) ||
      !write("certificate.pem", identity.certificate)) {
    return 1;
  }
  std::puts(authority.name().c_str());
}

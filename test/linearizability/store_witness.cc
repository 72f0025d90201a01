// A Witness of a job's store over daemons that stand by for one another, for test/chaos.
//
// usage: store_witness HOST:PORT[,HOST:PORT]... RUN_ID TOKEN_FILE SEED
//
// For each line of its input it ends a history, and writes one line: "CALLS UNKNOWN", and what is
// wrong behind that, if anything. Then it begins the next one.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "rendezvous/identity/token.h"
#include "test/linearizability/witness.h"

int main(int argc, char** argv) {
  using namespace muster;
  if (argc != 5) return 2;
  const auto token = rendezvous::ReadTokenFile(argv[3]);
  if (!token.ok()) {
    std::cerr << token.status().message() << std::endl;
    return 1;
  }
  linearizability::StorePlace place{
      absl::StrSplit(argv[1], ','),
      rendezvous::Credentials::FromToken(*token, rendezvous::Role::kTool), argv[2]};
  std::uint64_t seed = std::strtoull(argv[4], nullptr, 10);
  for (std::string line;; ++seed) {
    place.prefix = absl::StrCat("witness/", seed, "/");
    linearizability::Witness witness(place, seed);
    if (!std::getline(std::cin, line)) return 0;
    const auto finding = witness.End();
    std::cout << finding.calls << ' ' << finding.unknown << ' ' << finding.trouble << std::endl;
  }
}

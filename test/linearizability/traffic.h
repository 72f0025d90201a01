// What the clients of a history ask, by chance: few keys, so that they meet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "test/linearizability/chance.h"
#include "test/linearizability/store_history.h"

namespace muster::linearizability {

// The keys, each with a use of its own:
//   a, b      every command of one key
//   count     Add and Get: each sum is given once
//   log       Append and Get: it only grows, so any loss shows in what is read last
//   x, y, z   written and read together
extern const std::vector<std::string> kKeys;
inline constexpr const char* kLogKey = "log";

// The calls of one client. What it writes nobody else writes, nor does it again, as far as the
// command allows.
class Traffic {
 public:
  Traffic(std::uint64_t seed, int client);

  StoreCall Next();
  // Makes later calls likelier to succeed (CompareSet).
  void Saw(const StoreOperation& operation);

 private:
  StoreCall OfOneKey();
  StoreCall OfManyKeys();
  // "c3.17", which is no number to Add; `number`: "4017".
  std::string NewValue(bool number);

  const int client_;
  Chance chance_;
  int values_ = 0;
  std::string last_seen_;  // of the keys a and b
};

}  // namespace muster::linearizability

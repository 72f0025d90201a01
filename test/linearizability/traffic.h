// The random calls of a history's clients. There are few keys, so that clients interfere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "test/linearizability/chance.h"
#include "test/linearizability/store_history.h"

namespace muster::linearizability {

// The keys, each with its own use:
//   a, b      every command of one key
//   count     Add and Get: each sum is returned once
//   log       Append and Get: it only grows, so the last read shows any loss
//   x, y, z   written and read together
extern const std::vector<std::string> kKeys;
inline constexpr const char* kLogKey = "log";

// The calls of one client. As far as the command allows, each value is written only once and by one
// client only.
class Traffic {
 public:
  Traffic(std::uint64_t seed, int client);

  StoreCall Next();
  // Makes later CompareSet calls more likely to succeed.
  void Saw(const StoreOperation& operation);

 private:
  StoreCall OfOneKey();
  StoreCall OfManyKeys();
  // A new value such as "c3.17", which Add does not accept as a number; with `number`, such as
  // "4017".
  std::string NewValue(bool number);

  const int client_;
  Chance chance_;
  int values_ = 0;
  std::string last_seen_;  // for keys a and b
};

}  // namespace muster::linearizability

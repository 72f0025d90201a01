#include "test/linearizability/traffic.h"

#include "test/linearizability/calls.h"

namespace muster::linearizability {

const std::vector<std::string> kKeys = {"a", "b", "count", kLogKey, "x", "y", "z"};

Traffic::Traffic(std::uint64_t seed, int client)
    : client_(client), chance_(seed * 1000 + static_cast<std::uint64_t>(client)) {}

StoreCall Traffic::Next() {
  switch (chance_.Below(10)) {
    case 0:
      return Add("count", chance_.Between(1, 3));
    case 1:
      return Get("count");
    case 2:
      return Append(kLogKey, NewValue(false) + ";");
    case 3:
      return Get(kLogKey);
    case 4:
    case 5:
    case 6:
      return OfManyKeys();
    default:
      return OfOneKey();
  }
}

void Traffic::Saw(const StoreOperation& operation) {
  if (operation.answer.kind != StoreAnswer::Kind::kDone) return;
  if (operation.call.keys[0] != "a" && operation.call.keys[0] != "b") return;
  if (!operation.answer.values.empty()) last_seen_ = operation.answer.values[0].value_or("");
}

StoreCall Traffic::OfOneKey() {
  const std::string key = chance_.Happens(1, 2) ? "a" : "b";
  switch (chance_.Below(9)) {
    case 0:
      return Set(key, NewValue(false));
    case 1:
      return Set(key, NewValue(true));
    case 2:
      return Add(key, chance_.Between(-2, 2));
    case 3:
    case 4:
      return CompareSet(key, last_seen_, NewValue(chance_.Happens(1, 2)));
    case 5:
      return Append(key, NewValue(false));
    case 6:
      return Delete(key);
    default:
      return Get(key);
  }
}

StoreCall Traffic::OfManyKeys() {
  // Two of the three, or all.
  std::vector<std::string> keys = {"x", "y", "z"};
  if (chance_.Happens(2, 3)) keys.erase(keys.begin() + chance_.Below(3));
  switch (chance_.Below(8)) {
    case 0:
    case 1:
      return MultiSet(keys, std::vector<std::string>(keys.size(), NewValue(false)));
    case 2:
      return Set(keys[0], NewValue(false));
    case 3:
      return Delete(keys[0]);
    case 4:
      return Check(keys);
    case 5:
      return Get(keys[0]);
    default:
      return MultiGet(keys);
  }
}

std::string Traffic::NewValue(bool number) {
  ++values_;
  if (number) return std::to_string(1000 * (client_ + 1) + values_);
  return "c" + std::to_string(client_) + "." + std::to_string(values_);
}

}  // namespace muster::linearizability

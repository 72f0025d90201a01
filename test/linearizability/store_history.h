// The operations of a history: what clients did with a job's store, and what they saw.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "test/linearizability/checker.h"

namespace muster::linearizability {

enum class StoreCommand {
  kGet,
  kSet,
  kAdd,
  kCompareSet,
  kAppend,
  kDelete,
  kCheck,
  kMultiGet,
  kMultiSet,
};

// A call, as its client made it.
struct StoreCall {
  StoreCommand command = StoreCommand::kGet;
  std::vector<std::string> keys;  // Check, MultiGet and MultiSet: one or more, all different
  // Set: the value. CompareSet: the expected and the desired value. Append: the suffix. MultiSet: a
  // value for each key.
  std::vector<std::string> values;
  std::int64_t delta = 0;  // for Add

  bool writes() const;
  bool operator==(const StoreCall&) const = default;
};

// The answer to a call.
struct StoreAnswer {
  enum class Kind {
    kDone,
    kNotANumber,  // Add
    kTooLarge,    // Add: the value or the sum does not fit in 64 bits
    kUnknown,     // no answer: it was done, will be done, or never will be
  };

  Kind kind = Kind::kDone;
  // Get and MultiGet: each key's value, or nothing if it does not exist. CompareSet: the value
  // returned.
  std::vector<std::optional<std::string>> values;
  bool yes = false;      // CompareSet: stored. Delete: deleted. Check: all exist
  std::int64_t sum = 0;  // Add

  bool operator==(const StoreAnswer&) const = default;
};

struct StoreOperation {
  int client = 0;
  StoreCall call;
  StoreAnswer answer;
  Span span;
  // When the client stopped waiting. The same as span.return_ns, unless the outcome is unknown.
  std::int64_t ended_ns = 0;
};

using StoreHistory = std::vector<StoreOperation>;

// One line without a line feed, times in microseconds after `zero_ns`:
//   "    1204..1893     us  client 3  Append 'log' 'c3.17;' -> done"
std::string ToText(const StoreOperation& operation, std::int64_t zero_ns);

// One line per operation, ordered by the time of its call; times are relative to the first call.
std::string ToText(StoreHistory history);

// "'text'", or "nothing".
std::string Shown(const std::optional<std::string>& value);

}  // namespace muster::linearizability

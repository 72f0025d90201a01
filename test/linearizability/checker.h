// Checks whether a recorded history is linearizable: whether its overlapping operations can be put
// in an order that explains all their outcomes, each taking effect at one instant between its call
// and its return.
//
// The search is Wing and Gong's, with the memoization added by Lowe (G. Lowe, "Testing for
// linearizability"; porcupine works the same way): depth first over all orders, never exploring a
// configuration (the set of placed operations and the state they lead to) twice.
//
// Operations whose client never learned the outcome may have taken effect at any time after their
// call, or never. Each could double the search; three rules prevent that. They are placed only
// where nothing else works: the search first allows at most one of them in a row, then two, four
// and so on. Of two that do the same, the earlier one is placed first. And a configuration is
// skipped if an earlier one had placed the same known operations, reached the same state, and still
// had all the unknown ones that this one has: it could do everything that this one can.
//
// Uses no clock and no threads. The model defines the operations (store_model.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace muster::linearizability {

// When an operation was in progress, in nanoseconds of one clock (CLOCK_MONOTONIC). Two that share
// a single instant overlap.
struct Span {
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  std::int64_t call_ns = 0;
  std::int64_t return_ns = kNever;  // kNever: the outcome is unknown

  bool known() const { return return_ns != kNever; }
};

// What each operation does to a state. Operations are numbered from 0, in the order of their spans.
// States are byte strings, equal exactly when the bytes are.
class Model {
 public:
  virtual ~Model() = default;
  virtual std::string InitialState() const = 0;
  // The state after the operation took effect in `state`; nothing if its outcome would then differ
  // from what its client saw. An operation with unknown outcome is always possible.
  virtual std::optional<std::string> Step(std::size_t operation,
                                          const std::string& state) const = 0;
  // Whether the two are interchangeable wherever both may take effect.
  virtual bool DoTheSame(std::size_t operation, std::size_t other) const = 0;

  // For error messages, one line each.
  virtual std::string ShowOperation(std::size_t operation) const = 0;
  virtual std::string ShowState(const std::string& state) const = 0;
};

enum class Answer {
  kLinearizable,
  kNotLinearizable,
  kGaveUp,  // too many configurations; callers must treat this as a failure
};

struct Verdict {
  Answer answer = Answer::kLinearizable;
  // The longest order found, as operation numbers. Contains all known operations if linearizable.
  std::vector<std::size_t> order;
  // Unless linearizable: the end of that order, the state it leads to, and the operations of which
  // one would have to come next although none can.
  std::string explanation;
};

// A few seconds of search, and at most a few hundred megabytes.
inline constexpr std::size_t kMaxConfigurations = 1'000'000;

Verdict CheckHistory(const std::vector<Span>& spans, const Model& model,
                     std::size_t max_configurations = kMaxConfigurations);

}  // namespace muster::linearizability

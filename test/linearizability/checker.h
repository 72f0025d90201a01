// Whether a recorded history is linearizable: whether its operations, which overlapped one another,
// can be put in an order that explains all their outcomes, each at one instant between its call and
// its return.
//
// The search is Wing and Gong's, with the memory that Lowe gave it (G. Lowe, "Testing for
// linearizability"; porcupine is built the same way): depth first over all orders, where a
// configuration (which operations are placed, and the state they lead to) is never gone into twice.
//
// Operations whose client never learned the outcome may have taken effect at any time after their
// call, or never. Each would double the search, but for three things. They are placed only where
// nothing else will do; a history is first searched for an order with at most one of them in a row,
// then two, four and so on. Of two that do the same the earlier one is placed first. And a
// configuration is also not gone into if an earlier one had placed the same known operations, had
// come to the same state, and has left all the unknown ones that this one has left: it could do all
// that this one can.
//
// No clock and no threads. The model says what the operations are (store_model.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace muster::linearizability {

// When an operation was under way, in nanoseconds of one clock (CLOCK_MONOTONIC). Two that touch
// in one instant overlap.
struct Span {
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  std::int64_t call_ns = 0;
  std::int64_t return_ns = kNever;  // kNever: the outcome is unknown

  bool known() const { return return_ns != kNever; }
};

// What the operations, numbered from 0 in the order of their spans, do to a state. States are
// bytes: two are equal exactly when their bytes are.
class Model {
 public:
  virtual ~Model() = default;
  virtual std::string InitialState() const = 0;
  // The state after the operation, if it took effect in `state`; nothing if it would have had
  // another outcome than its client saw. What a client saw of an operation with unknown outcome
  // excludes nothing.
  virtual std::optional<std::string> Step(std::size_t operation,
                                          const std::string& state) const = 0;
  // Whether one may stand for the other wherever both may take effect.
  virtual bool DoTheSame(std::size_t operation, std::size_t other) const = 0;

  // For people, one line each.
  virtual std::string ShowOperation(std::size_t operation) const = 0;
  virtual std::string ShowState(const std::string& state) const = 0;
};

enum class Answer {
  kLinearizable,
  kNotLinearizable,
  kGaveUp,  // more configurations than were allowed; whoever asked must take it for a failure
};

struct Verdict {
  Answer answer = Answer::kLinearizable;
  // The longest order that was found, as numbers of operations: of all known ones if linearizable.
  std::vector<std::size_t> order;
  // Unless linearizable: that order's end, the state it leads to, and the operations of which one
  // would have to come next and none can.
  std::string explanation;
};

// Some seconds of search, and at most some hundred megabytes.
inline constexpr std::size_t kMaxConfigurations = 1'000'000;

Verdict CheckHistory(const std::vector<Span>& spans, const Model& model,
                     std::size_t max_configurations = kMaxConfigurations);

}  // namespace muster::linearizability

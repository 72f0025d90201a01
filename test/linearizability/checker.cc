#include "test/linearizability/checker.h"

#include <algorithm>
#include <deque>
#include <unordered_map>

#include "test/linearizability/bits.h"

namespace muster::linearizability {
namespace {

class Search {
 public:
  Search(const std::vector<Span>& spans, const Model& model, std::size_t max_configurations)
      : spans_(spans),
        model_(model),
        max_configurations_(max_configurations),
        placed_known_(spans.size()),
        placed_unknown_(spans.size()) {
    for (std::size_t i = 0; i < spans.size(); ++i) {
      (spans[i].known() ? known_ : unknown_).push_back(i);
    }
    const auto by_call = [&spans](std::size_t a, std::size_t b) {
      return spans[a].call_ns < spans[b].call_ns;
    };
    std::stable_sort(known_.begin(), known_.end(), by_call);
    std::stable_sort(unknown_.begin(), unknown_.end(), by_call);
    earlier_twin_.resize(spans.size());
    for (auto i = unknown_.begin(); i != unknown_.end(); ++i) {
      earlier_twin_[*i] = *i;
      for (auto j = unknown_.begin(); j != i; ++j) {
        if (model.DoTheSame(*j, *i)) earlier_twin_[*i] = *j;
      }
    }
  }

  Verdict Run() {
    const std::string initial_state = model_.InitialState();
    longest_state_ = initial_state;
    Answer answer = Answer::kNotLinearizable;
    bool complete = false;
    for (max_in_a_row_ = 1; answer == Answer::kNotLinearizable && !complete; max_in_a_row_ *= 2) {
      seen_.clear();
      configurations_ = 0;
      was_cut_ = false;
      answer = Extend(initial_state, 0);
      complete = !was_cut_;
    }
    if (answer == Answer::kLinearizable) return {answer, order_, ""};
    return {answer, longest_, Explain(answer)};
  }

 private:
  // A configuration that was gone into, beside its known operations and its state.
  struct Seen {
    Bits placed_unknown;
    std::size_t in_a_row = 0;
  };

  // What may come next.
  struct Candidates {
    std::vector<std::size_t> known;
    std::vector<std::size_t> unknown;
  };

  // A way on from a configuration by unknown operations alone.
  struct Detour {
    std::vector<std::size_t> operations;
    std::string state;
  };

  // Whether the order so far, which leads to `state` and does not end with an unknown operation,
  // can be completed. The known operations before number `first` of known_ are all placed.
  Answer Extend(const std::string& state, std::size_t first) {
    first = SkipPlaced(first);
    if (first == known_.size()) return Answer::kLinearizable;
    if (!IsNew(state, 0)) return Answer::kNotLinearizable;

    const Candidates candidates = FindCandidates(first);
    // Short ones first, as a configuration then makes those superfluous that get to the same state
    // with more.
    std::deque<Detour> detours;
    detours.push_back({{}, state});
    for (; !detours.empty(); detours.pop_front()) {
      if (++configurations_ > max_configurations_) return Answer::kGaveUp;
      const Detour& detour = detours.front();
      for (const std::size_t operation : detour.operations) Place(operation);
      const Answer answer = ExtendByKnown(detour.state, candidates, first);
      if (answer != Answer::kNotLinearizable) return answer;
      AddLonger(detour, candidates, detours);
      for (const std::size_t operation : detour.operations) TakeBack(operation);
    }
    return Answer::kNotLinearizable;
  }

  Answer ExtendByKnown(const std::string& state, const Candidates& candidates, std::size_t first) {
    for (const std::size_t operation : candidates.known) {
      const std::optional<std::string> next = model_.Step(operation, state);
      if (!next) continue;
      Place(operation);
      NoteLongest(*next);
      const Answer answer = Extend(*next, first);
      if (answer != Answer::kNotLinearizable) return answer;
      TakeBack(operation);
    }
    return Answer::kNotLinearizable;
  }

  // Adds what `detour`, which is placed, becomes with one more operation.
  void AddLonger(const Detour& detour, const Candidates& candidates, std::deque<Detour>& detours) {
    for (const std::size_t operation : candidates.unknown) {
      const std::size_t twin = earlier_twin_[operation];
      if (placed_unknown_.Has(operation)) continue;
      if (twin != operation && !placed_unknown_.Has(twin)) continue;
      if (detour.operations.size() == max_in_a_row_) {
        was_cut_ = true;
        return;
      }
      std::optional<std::string> next = model_.Step(operation, detour.state);
      if (!next) continue;
      Place(operation);
      if (IsNew(*next, detour.operations.size() + 1)) {
        detours.push_back({detour.operations, *std::move(next)});
        detours.back().operations.push_back(operation);
      }
      TakeBack(operation);
    }
  }

  // An operation may come next if none that is still to be placed had returned before its call.
  Candidates FindCandidates(std::size_t first) const {
    std::int64_t first_return = Span::kNever;
    Candidates found;
    for (std::size_t i = first; i < known_.size(); ++i) {
      const Span& span = spans_[known_[i]];
      if (span.call_ns > first_return) break;
      if (placed_known_.Has(known_[i])) continue;
      found.known.push_back(known_[i]);
      first_return = std::min(first_return, span.return_ns);
    }
    std::erase_if(found.known, [&](std::size_t i) { return spans_[i].call_ns > first_return; });
    for (const std::size_t i : unknown_) {
      if (spans_[i].call_ns > first_return) break;
      if (!placed_unknown_.Has(i)) found.unknown.push_back(i);
    }
    return found;
  }

  // Remembers the configuration; false if one that could do as much was gone into before.
  bool IsNew(const std::string& state, std::size_t in_a_row) {
    std::vector<Seen>& seen = seen_[placed_known_.Bytes() + state];
    for (const Seen& other : seen) {
      if (other.in_a_row <= in_a_row && other.placed_unknown.IsPartOf(placed_unknown_)) {
        return false;
      }
    }
    seen.push_back({placed_unknown_, in_a_row});
    return true;
  }

  void Place(std::size_t operation) {
    order_.push_back(operation);
    if (!spans_[operation].known()) return placed_unknown_.Add(operation);
    placed_known_.Add(operation);
    ++num_placed_known_;
  }

  void NoteLongest(const std::string& state) {
    if (num_placed_known_ <= longest_known_) return;
    longest_known_ = num_placed_known_;
    longest_ = order_;
    longest_state_ = state;
  }

  void TakeBack(std::size_t operation) {
    order_.pop_back();
    if (!spans_[operation].known()) return placed_unknown_.Remove(operation);
    placed_known_.Remove(operation);
    --num_placed_known_;
  }

  // The first of known_, from number `first` on, that is still to be placed; or their number.
  std::size_t SkipPlaced(std::size_t first) const {
    while (first < known_.size() && placed_known_.Has(known_[first])) ++first;
    return first;
  }

  std::string Explain(Answer answer) {
    constexpr std::size_t kShown = 12;
    std::string text;
    if (answer == Answer::kGaveUp) {
      text = "gave up after " + std::to_string(max_configurations_) + " configurations: ";
    }
    text += std::to_string(longest_known_) + " of " + std::to_string(known_.size()) +
            " operations with known outcome, and no more, were put in order:\n";
    const std::size_t skipped = longest_.size() > kShown ? longest_.size() - kShown : 0;
    if (skipped > 0) text += "  ... (" + std::to_string(skipped) + " before)\n";
    for (std::size_t i = skipped; i < longest_.size(); ++i) {
      text += "  " + model_.ShowOperation(longest_[i]) + "\n";
    }
    text += "then the state is " + model_.ShowState(longest_state_) + "\n";

    // Back to the end of that order.
    placed_known_ = placed_unknown_ = Bits(spans_.size());
    for (const std::size_t i : longest_) {
      (spans_[i].known() ? placed_known_ : placed_unknown_).Add(i);
    }
    const Candidates candidates = FindCandidates(SkipPlaced(0));
    text += "and none of these can come next so that the rest follows:\n";
    for (const std::size_t i : candidates.known) text += "  " + model_.ShowOperation(i) + "\n";
    if (candidates.unknown.empty()) return text;
    text += "not even after some of those with unknown outcome:\n";
    for (const std::size_t i : candidates.unknown) text += "  " + model_.ShowOperation(i) + "\n";
    return text;
  }

  const std::vector<Span>& spans_;
  const Model& model_;
  const std::size_t max_configurations_;
  // Each in the order of calls.
  std::vector<std::size_t> known_;
  std::vector<std::size_t> unknown_;
  // By operation: the last unknown one before it that does the same, or itself if there is none.
  std::vector<std::size_t> earlier_twin_;
  // How many unknown ones may follow one another; and whether that has cut the search.
  std::size_t max_in_a_row_ = 0;
  bool was_cut_ = false;

  // The order so far.
  Bits placed_known_;
  Bits placed_unknown_;
  std::vector<std::size_t> order_;
  std::size_t num_placed_known_ = 0;

  // By known operations and state.
  std::unordered_map<std::string, std::vector<Seen>> seen_;
  std::size_t configurations_ = 0;

  std::vector<std::size_t> longest_;
  std::size_t longest_known_ = 0;
  std::string longest_state_;
};

}  // namespace

Verdict CheckHistory(const std::vector<Span>& spans, const Model& model,
                     std::size_t max_configurations) {
  return Search(spans, model, max_configurations).Run();
}

}  // namespace muster::linearizability

#include "test/linearizability/store_model.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster::linearizability {
namespace {

std::optional<std::string> Find(const StoreState& state, const std::string& key) {
  const auto found = state.find(key);
  if (found == state.end()) return std::nullopt;
  return found->second;
}

// As std::stoll reads it, which c10d uses.
StoreAnswer Add(const StoreCall& call, StoreState& state) {
  const std::string text = Find(state, call.keys[0]).value_or("0");
  char* end = nullptr;
  errno = 0;
  const std::int64_t number = std::strtoll(text.c_str(), &end, 10);
  if (end == text.c_str()) return {.kind = StoreAnswer::Kind::kNotANumber};
  if (errno == ERANGE) return {.kind = StoreAnswer::Kind::kTooLarge};
  std::int64_t sum = 0;
  if (__builtin_add_overflow(number, call.delta, &sum)) {
    return {.kind = StoreAnswer::Kind::kTooLarge};
  }
  state[call.keys[0]] = std::to_string(sum);
  return {.sum = sum};
}

StoreAnswer CompareSet(const StoreCall& call, StoreState& state) {
  const std::string& expected = call.values[0];
  const std::string& desired = call.values[1];
  const std::optional<std::string> value = Find(state, call.keys[0]);
  if (value.value_or("") != expected) return {.values = {value.value_or(expected)}};
  state[call.keys[0]] = desired;
  return {.values = {desired}, .yes = true};
}

std::string Encode(const StoreState& state) {
  std::string bytes;
  for (const auto& [key, value] : state) {
    for (const std::string* part : {&key, &value}) {
      const auto size = static_cast<std::uint32_t>(part->size());
      bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
      bytes.append(*part);
    }
  }
  return bytes;
}

StoreState Decode(const std::string& bytes) {
  StoreState state;
  std::size_t at = 0;
  const auto next = [&] {
    std::uint32_t size = 0;
    std::memcpy(&size, bytes.data() + at, sizeof size);
    at += sizeof size + size;
    return bytes.substr(at - size, size);
  };
  while (at < bytes.size()) {
    std::string key = next();
    state.emplace(std::move(key), next());
  }
  return state;
}

// The operations of some keys.
class StoreModel final : public Model {
 public:
  StoreModel(std::vector<const StoreOperation*> operations, std::int64_t zero_ns)
      : operations_(std::move(operations)), zero_ns_(zero_ns), log_(FindLog()) {}

  std::string InitialState() const override { return Encode({}); }

  std::optional<std::string> Step(std::size_t operation, const std::string& bytes) const override {
    StoreState state = Decode(bytes);
    const StoreAnswer answer = Apply(operations_[operation]->call, state);
    const StoreAnswer& seen = operations_[operation]->answer;
    if (seen.kind != StoreAnswer::Kind::kUnknown && seen != answer) return std::nullopt;
    if (log_ && !FitsLog(state)) return std::nullopt;
    return Encode(state);
  }

  bool DoTheSame(std::size_t operation, std::size_t other) const override {
    return operations_[operation]->call == operations_[other]->call;
  }

  std::string ShowOperation(std::size_t operation) const override {
    return ToText(*operations_[operation], zero_ns_);
  }

  std::string ShowState(const std::string& bytes) const override {
    const StoreState state = Decode(bytes);
    if (state.empty()) return "that no key exists";
    return absl::StrJoin(state, ", ", [](std::string* out, const auto& entry) {
      absl::StrAppend(out, Shown(entry.first), " = ", Shown(entry.second));
    });
  }

 private:
  // If the only key is only appended to and read: the longest value that was read.
  std::optional<std::string> FindLog() const {
    std::string log;
    for (const StoreOperation* operation : operations_) {
      const StoreCommand command = operation->call.command;
      if (command != StoreCommand::kAppend && command != StoreCommand::kGet) return std::nullopt;
      if (command == StoreCommand::kAppend || !operation->span.known()) continue;
      const std::string value = operation->answer.values[0].value_or("");
      if (value.size() > log.size()) log = value;
    }
    return log;
  }

  // Whether the log was, or will be, what was read of it. As it only grows it then is the beginning
  // of that, or that is its beginning. No order is lost by asking for it at once, and the search
  // need not try every order of the appends between two reads.
  bool FitsLog(const StoreState& state) const {
    if (state.empty()) return true;
    const std::string& value = state.begin()->second;
    const std::size_t common = std::min(value.size(), log_->size());
    return value.compare(0, common, *log_, 0, common) == 0;
  }

  const std::vector<const StoreOperation*> operations_;
  const std::int64_t zero_ns_;
  const std::optional<std::string> log_;
};

// The keys of the history, in groups: two are in one if a call names both.
std::vector<std::set<std::string>> GroupKeys(const StoreHistory& history) {
  std::vector<std::set<std::string>> groups;
  for (const StoreOperation& operation : history) {
    std::set<std::string> group(operation.call.keys.begin(), operation.call.keys.end());
    std::erase_if(groups, [&group](std::set<std::string>& other) {
      bool shared = false;
      for (const std::string& key : other) shared = shared || group.contains(key);
      if (shared) group.merge(other);
      return shared;
    });
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace

StoreAnswer Apply(const StoreCall& call, StoreState& state) {
  StoreAnswer answer;
  switch (call.command) {
    case StoreCommand::kGet:
    case StoreCommand::kMultiGet:
      for (const std::string& key : call.keys) answer.values.push_back(Find(state, key));
      break;
    case StoreCommand::kSet:
    case StoreCommand::kMultiSet:
      for (std::size_t i = 0; i < call.keys.size(); ++i) state[call.keys[i]] = call.values[i];
      break;
    case StoreCommand::kAdd:
      return Add(call, state);
    case StoreCommand::kCompareSet:
      return CompareSet(call, state);
    case StoreCommand::kAppend:
      state[call.keys[0]] += call.values[0];
      break;
    case StoreCommand::kDelete:
      answer.yes = state.erase(call.keys[0]) > 0;
      break;
    case StoreCommand::kCheck:
      answer.yes = true;
      for (const std::string& key : call.keys) answer.yes = answer.yes && state.contains(key);
      break;
  }
  return answer;
}

StoreVerdict CheckStore(const StoreHistory& history, std::size_t max_configurations) {
  StoreVerdict worst;
  std::int64_t zero_ns = Span::kNever;
  for (const auto& operation : history) zero_ns = std::min(zero_ns, operation.span.call_ns);

  for (const std::set<std::string>& keys : GroupKeys(history)) {
    std::vector<const StoreOperation*> operations;
    std::vector<Span> spans;
    for (const StoreOperation& operation : history) {
      if (operation.call.keys.empty() || !keys.contains(operation.call.keys[0])) continue;
      // A read that nobody saw the answer of says nothing.
      if (!operation.span.known() && !operation.call.writes()) continue;
      operations.push_back(&operation);
      spans.push_back(operation.span);
    }
    const StoreModel model(std::move(operations), zero_ns);
    const Verdict verdict = CheckHistory(spans, model, max_configurations);
    if (verdict.answer == Answer::kLinearizable) continue;
    if (worst.answer == Answer::kNotLinearizable) continue;
    worst = {verdict.answer,
             absl::StrCat("keys ", absl::StrJoin(keys, ", "), ": ", verdict.explanation)};
  }
  return worst;
}

}  // namespace muster::linearizability

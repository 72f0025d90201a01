#include "test/rendezvous/cluster/checks/store_checks.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster::rendezvous {
namespace {

std::int64_t NumberOf(const std::string& text) {
  return std::strtoll(text.c_str(), nullptr, 10);
}

}  // namespace

StoreChecks::Call StoreChecks::Begin(const StoreRequest& request) {
  KeyTruth& key = keys_[{request.run_id, request.key}];
  Call call{.request = request, .at_least = key.seen};
  switch (request.operation) {
    case StoreOperation::kAdd:
      ++key.attempted;
      break;
    case StoreOperation::kSet:
    case StoreOperation::kCompareSet:
      key.attempted = std::max(key.attempted, NumberOf(request.value));
      break;
    case StoreOperation::kAppend:
      key.attempted = std::max(key.attempted, NumberOf(request.value));
      break;
    case StoreOperation::kGet:
    case StoreOperation::kWait:
      break;
  }
  return call;
}

void StoreChecks::End(const Call& call, const StoreReply& answer) {
  KeyTruth& key = keys_[{call.request.run_id, call.request.key}];
  const Incarnation life = answer.incarnation;
  switch (call.request.operation) {
    case StoreOperation::kSet: {
      std::int64_t& seen = key.seen[life];
      seen = std::max(seen, NumberOf(call.request.value));
      return;
    }
    case StoreOperation::kAdd: {
      const std::int64_t sum = NumberOf(answer.value);
      if (!key.given.emplace(life, sum).second) {
        return Fail(call, answer, absl::StrCat("the sum ", sum, " was given before"));
      }
      const auto least = call.at_least.find(life);
      if (least != call.at_least.end() && sum <= least->second) {
        return Fail(call, answer,
                    absl::StrCat("adding gives ", sum, " when ", least->second,
                                 " was reached before it began"));
      }
      return Saw(call, answer, sum);
    }
    case StoreOperation::kCompareSet: {
      const std::int64_t number = NumberOf(answer.value);
      if (answer.stored && !key.given.emplace(life, number).second) {
        return Fail(call, answer, absl::StrCat("the step to ", number, " was made before"));
      }
      // Of a missing key c10d answers with what was expected, which tells nothing.
      if (!answer.stored && answer.value == call.request.expected) return;
      return Saw(call, answer, number);
    }
    case StoreOperation::kAppend:
      key.logged[life].push_back(NumberOf(call.request.value));
      return;
    case StoreOperation::kGet:
      if (call.request.key[0] == 'a') return SawLog(call, answer);
      return Saw(call, answer, NumberOf(answer.value));
    case StoreOperation::kWait:
      return;
  }
}

// Somebody saw that the key has this number, which nobody may see less than from now on.
void StoreChecks::Saw(const Call& call, const StoreReply& answer, std::int64_t number) {
  KeyTruth& key = keys_[{call.request.run_id, call.request.key}];
  const auto least = call.at_least.find(answer.incarnation);
  if (least != call.at_least.end() && number < least->second) {
    return Fail(
        call, answer,
        absl::StrCat(number, " is read when ", least->second, " was there before the call began"));
  }
  if (number > key.attempted) {
    return Fail(call, answer, absl::StrCat(number, " is read, which nobody has written"));
  }
  std::int64_t& seen = key.seen[answer.incarnation];
  seen = std::max(seen, number);
}

void StoreChecks::SawLog(const Call& call, const StoreReply& answer) {
  KeyTruth& key = keys_[{call.request.run_id, call.request.key}];
  std::vector<std::int64_t> numbers;
  for (const absl::string_view entry : absl::StrSplit(answer.value, ';', absl::SkipEmpty())) {
    std::int64_t number = 0;
    if (!absl::SimpleAtoi(entry, &number) || number > key.attempted ||
        (!numbers.empty() && number <= numbers.back())) {
      return Fail(call, answer, absl::StrCat("the log '", answer.value, "' has what nobody wrote"));
    }
    numbers.push_back(number);
  }
  const auto least = call.at_least.find(answer.incarnation);
  const std::int64_t last = numbers.empty() ? 0 : numbers.back();
  if (least != call.at_least.end() && last < least->second) {
    return Fail(call, answer,
                absl::StrCat("the log ends with ", last, ", and did with ", least->second,
                             " before the call began"));
  }
  // The writer is the reader: all that was acknowledged was so before this call began.
  for (const std::int64_t number : key.logged[answer.incarnation]) {
    if (!std::binary_search(numbers.begin(), numbers.end(), number)) {
      return Fail(call, answer, absl::StrCat("the log has lost ", number));
    }
  }
  std::int64_t& seen = key.seen[answer.incarnation];
  seen = std::max(seen, last);
}

void StoreChecks::Fail(const Call& call, const StoreReply& answer, const std::string& what) {
  violations_.Add(Check::kStore,
                  absl::StrCat("job ", call.request.run_id, ", incarnation ", answer.incarnation,
                               ", key ", call.request.key, ": ", what));
}

}  // namespace muster::rendezvous

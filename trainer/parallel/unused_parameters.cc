#include "trainer/parallel/unused_parameters.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace muster::trainer {
namespace {

// More names than this make no sentence.
constexpr std::size_t kMostNames = 8;

// The names behind "Parameter indices which did not receive grad for rank 0: 2 3" (c10d
// reducer.cpp, ensure_prior_reduction_finished).
std::vector<std::string> Missing(const std::string& message,
                                 const std::vector<std::string>& names) {
  const std::string intro = "indices which did not receive grad for rank ";
  std::size_t at = message.find(intro);
  if (at != std::string::npos) at = message.find(": ", at);
  if (at == std::string::npos) return {};
  std::vector<std::string> missing;
  const std::string numbers = message.substr(at + 2, message.find('\n', at) - at - 2);
  const std::vector<std::string> words =
      absl::StrSplit(numbers, absl::ByAnyChar(" ,."), absl::SkipEmpty());
  for (const std::string& word : words) {
    std::size_t index = 0;
    if (!absl::SimpleAtoi(word, &index) || index >= names.size()) break;
    missing.push_back(names[index]);
  }
  return missing;
}

}  // namespace

std::optional<std::string> UnusedParametersSentence(const std::string& message,
                                                    const std::vector<std::string>& names, int rank,
                                                    bool find_unused_parameters) {
  if (!absl::StrContains(message, "Expected to have finished reduction")) return std::nullopt;
  std::vector<std::string> missing = Missing(message, names);
  std::string which = missing.size() == 1 ? "parameter " : "parameters ";
  if (missing.empty()) {
    which = "some parameters";
  } else {
    const std::size_t more = missing.size() - std::min(missing.size(), kMostNames);
    missing.resize(missing.size() - more);
    absl::StrAppend(&which, absl::StrJoin(missing, ", "));
    if (more > 0) absl::StrAppend(&which, " and ", more, " more");
  }
  return absl::StrCat("the last step's loss on rank ", rank, " did not depend on ", which,
                      ", so not all gradients were averaged: ",
                      find_unused_parameters
                          ? "use every output of the model in the loss"
                          : "set find_unused_parameters (--find-unused-parameters), or leave them "
                            "out of the model");
}

}  // namespace muster::trainer

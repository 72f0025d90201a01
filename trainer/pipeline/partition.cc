#include "trainer/pipeline/partition.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster::trainer {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kRounding = 1e-9;  // relative: sums of the same costs in another order

// Of all cuts of the first n stages into k parts, the best by some measure; `At(k, n)` says with
// which stage the last part of it begins.
class BestCuts {
 public:
  // `join(of the parts before, cost of the last part)` is the measure of both together; it must not
  // fall when either rises.
  template <typename Join>
  BestCuts(const std::vector<double>& sums, std::size_t parts, const Join& join)
      : stages_(sums.size() - 1),
        measures_((parts + 1) * (stages_ + 1), kNever),
        begins_(measures_.size(), 0) {
    Measure(0, 0) = 0;
    for (std::size_t k = 1; k <= parts; ++k) {
      for (std::size_t n = k; n <= stages_; ++n) {
        for (std::size_t begin = k - 1; begin < n; ++begin) {
          const double with = join(Measure(k - 1, begin), sums[n] - sums[begin]);
          if (!(with < Measure(k, n) * (1 - kRounding))) continue;
          Measure(k, n) = with;
          begins_[k * (stages_ + 1) + n] = begin;
        }
      }
    }
  }

  double& Measure(std::size_t parts, std::size_t stages) {
    return measures_[parts * (stages_ + 1) + stages];
  }

  std::vector<std::size_t> Begins(std::size_t parts) const {
    std::vector<std::size_t> begins(parts);
    std::size_t end = stages_;
    for (std::size_t k = parts; k > 0; --k) {
      end = begins_[k * (stages_ + 1) + end];
      begins[k - 1] = end;
    }
    return begins;
  }

 private:
  const std::size_t stages_;
  std::vector<double> measures_;
  std::vector<std::size_t> begins_;
};

}  // namespace

absl::StatusOr<std::vector<std::size_t>> CutEvenly(const std::vector<double>& costs, int parts) {
  if (parts < 1 || static_cast<std::size_t>(parts) > costs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cut a model of ", costs.size(), costs.size() == 1 ? " stage" : " stages", " into ", parts,
        parts == 1 ? " part" : " parts", ": there can be 1 to as many as it has stages"));
  }
  std::vector<double> sums = {0};
  for (const double cost : costs) {
    if (!(cost >= 0) || std::isinf(cost)) {
      return absl::InvalidArgumentError(
          absl::StrCat("cut a model: stage ", sums.size() - 1, " cannot cost ", cost));
    }
    sums.push_back(sums.back() + cost);
  }
  const auto count = static_cast<std::size_t>(parts);
  BestCuts cheapest(sums, count, [](double before, double last) { return std::max(before, last); });
  const double most = cheapest.Measure(count, costs.size()) * (1 + kRounding);
  return BestCuts(sums, count,
                  [most](double before, double last) {
                    return last > most ? kNever : before + last * last;
                  })
      .Begins(count);
}

absl::StatusOr<std::vector<std::size_t>> CutAt(const std::vector<std::string>& stages,
                                               const std::vector<std::string>& begins) {
  std::vector<std::size_t> cut = {0};
  for (const std::string& name : begins) {
    const auto found = absl::c_find(stages, name);
    if (found == stages.end()) {
      return absl::InvalidArgumentError(absl::StrCat("begin a part with the stage '", name,
                                                     "': there is none; the stages are ",
                                                     absl::StrJoin(stages, ", ")));
    }
    const auto stage = static_cast<std::size_t>(found - stages.begin());
    if (stage <= cut.back()) {
      return absl::InvalidArgumentError(
          absl::StrCat("begin part ", cut.size(), " with the stage '", name, "': part ",
                       cut.size() - 1, " begins with '", stages[cut.back()], "', which ",
                       stage == cut.back() ? "is the same" : "comes later"));
    }
    cut.push_back(stage);
  }
  return cut;
}

}  // namespace muster::trainer

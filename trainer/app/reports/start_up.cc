#include "trainer/app/reports/start_up.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace muster::trainer {

std::string DataName(const Options& options) {
  if (!options.data_set.title.empty()) return options.data_set.title;
  const std::vector<std::string>& paths = options.data.paths;
  std::string text = absl::StrCat(options.data_set.name, " (");
  if (!paths.empty()) text += paths.front();
  if (paths.size() > 1) absl::StrAppend(&text, " and ", paths.size() - 1, " more");
  return text + ")";
}

std::string StartLine(const Options& options, const Environment& env, int threads, double gflops) {
  return absl::StrFormat("%s: %s on %s, rank %d of %d, %d thread%s each, BLAS %.0f GFLOP/s",
                         options.program, options.model.name, DataName(options), env.rank,
                         env.world_size, threads, threads == 1 ? "" : "s", gflops);
}

std::string JoinedLine(const World& world) {
  return absl::StrCat("joined: ", CommName(world.comm()), " on ", world.device().str(), " (",
                      world.why_comm(), ")");
}

}  // namespace muster::trainer

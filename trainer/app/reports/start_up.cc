#include "trainer/app/reports/start_up.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace muster::trainer {

std::string DataName(const DataOptions& data) {
  std::string paths = data.paths.empty() ? "" : data.paths.front();
  if (data.paths.size() > 1) absl::StrAppend(&paths, " and ", data.paths.size() - 1, " more");
  switch (data.kind) {
    case DataKind::kIdx:
      return absl::StrCat("idx (", paths, ")");
    case DataKind::kCifar10:
      return absl::StrCat("cifar10 (", paths, ")");
    case DataKind::kText:
      return absl::StrCat("text (", paths, ")");
    case DataKind::kTokens:
      return absl::StrCat("tokens (", paths, ")");
    case DataKind::kGenerated:
      return "generated images";
    case DataKind::kGeneratedText:
      return "generated text";
  }
  return "";
}

std::string StartLine(const Options& options, const Environment& env, int threads, double gflops) {
  return absl::StrFormat(
      "muster-train: %s on %s, rank %d of %d, %d thread%s each, BLAS %.0f GFLOP/s",
      ModelName(options.model.kind), DataName(options.data), env.rank, env.world_size, threads,
      threads == 1 ? "" : "s", gflops);
}

std::string JoinedLine(const ProcessGroup& group) {
  return absl::StrCat("joined: ", CommName(group.comm()), " on ", group.device().str(), " (",
                      group.why_comm(), ")");
}

}  // namespace muster::trainer

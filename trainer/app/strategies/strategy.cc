#include "trainer/app/strategies/strategy.h"

#include <utility>

#include "trainer/app/strategies/mesh_strategy.h"
#include "trainer/app/strategies/replica_strategy.h"
#include "trainer/compat/torch_version.h"

namespace muster::trainer {

absl::StatusOr<std::unique_ptr<Strategy>> MakeStrategy(const Options& given,
                                                       std::unique_ptr<Model> model, World& world,
                                                       PhaseTracker& phases) {
  Options options = given;
  options.optimizer.interpolate_mean = compat::kAdamWInterpolatesMean;
  options.optimizer.root_is_power = compat::kAdamWRootIsPower;
  if (options.parallel.shares_model()) {
    return MakeMeshStrategy(options, std::move(model), world, phases);
  }
  if (options.qat.on && !world.device().is_cpu()) {
    return absl::InvalidArgumentError("--qat runs on the CPU; add --comm gloo");
  }
  auto optimizer = MakeOptimizer(options.optimizer, model->Parameters());
  if (!optimizer.ok()) return optimizer.status();
  StrategyParts parts = {options, std::move(model), *std::move(optimizer), world.all(), phases};
  switch (options.parallel.kind) {
    case Parallel::kAverage:
      return MakeAveragingStrategy(std::move(parts));
    case Parallel::kThreads:
      return MakeThreadsStrategy(std::move(parts));
    case Parallel::kDdp:
      break;
  }
  return MakeDdpStrategy(std::move(parts));
}

}  // namespace muster::trainer

// One rank of qat_train_test: ranks that observe parts of a batch against a network that observes
// all of it. Exits with 0 if all is right; prints what is not to stderr.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/randn.h>

#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "test/trainer/models/small_residual.h"
#include "trainer/comm/world.h"
#include "trainer/models/image_models.h"
#include "trainer/models/model.h"
#include "trainer/quant/qat_options.h"
#include "trainer/quant/qat_run.h"
#include "trainer/worker/launcher_link.h"

namespace muster::trainer {
namespace {

int failures = 0;

void Expect(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "not so: %s\n", what.c_str());
  ++failures;
}

constexpr int kSteps = 5;
constexpr std::int64_t kShare = 8;

// Batch normalization has each rank's own statistics, which rank 0's replace before each step: then
// all ranks fold the same, and observe the same weights.
void ObserveResiduals(Group& group) {
  at::manual_seed(11);
  Model model(PrepareQat(SmallResidual(/*channels=*/1)).value(), /*channels_last=*/false);
  QatRun run(model.module(), {.on = true}, 3, group);
  std::vector<at::Tensor> buffers;
  for (const NamedTensor& buffer : model.Buffers()) buffers.push_back(buffer.tensor);
  for (const int epoch : {0, 1, 2}) {
    run.BeginEpoch(epoch);
    for (int step = 0; step < kSteps; ++step) {
      if (group.size() > 1) group.Broadcast(buffers, /*root=*/0, Use::kOther);
      const at::Tensor batch = at::randn({kShare * group.size(), 1, 12, 12}) * (step + 1);
      model.Forward(batch.narrow(0, kShare * group.rank(), kShare));
      run.AfterStep();
      for (const NamedTensor& buffer : model.Buffers()) {
        const at::Tensor own = buffer.tensor.to(at::kDouble).reshape({-1}).contiguous();
        const at::Tensor all = group.AllGather(own, Use::kOther).reshape({group.size(), -1});
        const bool alike = all.eq(all[0]).all().item<bool>();
        if (IsOfFakeQuantize(buffer.name)) {
          Expect(alike, buffer.name + " is the same on all ranks");
        } else if (buffer.name.find("running_mean") != std::string::npos && group.size() > 1) {
          Expect(!alike, buffer.name + " is each rank's own");
        }
      }
    }
  }
  Expect(run.Convert() != nullptr, "everything is observed");
}

int Main(const char* comm) {
  const auto env = ReadEnvironment(LookupInProcess);
  if (!env.ok()) return 2;
  auto world = World::Join(*env, std::string(comm) == "gloo" ? Comm::kGloo : Comm::kShm,
                           std::chrono::seconds(60));
  if (!world.ok()) return 2;
  Group& group = (*world)->all();

  const DataShape shape = {.channels = 1, .height = 12, .width = 12, .classes = 10};
  const auto mine = *MakeModel(QatRecipe(CnnRecipe()), shape, {.seed = 1});
  const auto alone = *MakeModel(QatRecipe(CnnRecipe()), shape, {.seed = 1});
  // The last epoch of three is frozen.
  QatRun run(mine->module(), {.on = true}, 3, group);
  auto& whole = dynamic_cast<QatNetwork&>(*alone->module());
  at::manual_seed(7);
  for (const int epoch : {0, 1, 2}) {
    run.BeginEpoch(epoch);
    whole.SetPhase(epoch == 2 ? QatPhase::kFrozen : QatPhase::kObserve);
    Expect(run.PhaseOf(epoch) == (epoch == 0   ? QatPhase::kObserve
                                  : epoch == 1 ? QatPhase::kRound
                                               : QatPhase::kFrozen),
           "an epoch to observe, one to round, and one with frozen ranges");
    for (int step = 0; step < kSteps; ++step) {
      const at::Tensor batch = at::randn({kShare * group.size(), 1, 12, 12}) * (step + 1);
      mine->Forward(batch.narrow(0, kShare * group.rank(), kShare));
      alone->Forward(batch);
      if (group.size() > 1 && epoch == 0) {
        const at::Tensor own = run.network().input_rounding().max_val().reshape({1}).clone();
        const at::Tensor all = group.AllGather(own, Use::kOther);
        Expect((all.max() - all.min()).item<double>() > 0, "ranks see different samples");
      }
      run.AfterStep();
      for (const NamedTensor& buffer : mine->Buffers()) {
        const at::Tensor own = buffer.tensor.to(at::kDouble).reshape({-1}).contiguous();
        const at::Tensor all = group.AllGather(own, Use::kOther).reshape({group.size(), -1});
        Expect(all.eq(all[0]).all().item<bool>(), buffer.name + " is the same on all ranks");
      }
      if (epoch > 0) continue;  // ranks round their samples to steps of their own
      for (const auto& one : whole.activations()) one->SetRange(one->min_val(), one->max_val());
      const auto& observers = run.network().activations();
      for (std::size_t i = 0; i < observers.size(); ++i) {
        const std::string which = " of activation " + std::to_string(i);
        // Products of matrices are rounded in another way when there are more rows.
        Expect(observers[i]->min_val().allclose(whole.activations()[i]->min_val(), 1e-5, 1e-6),
               "least" + which);
        Expect(observers[i]->max_val().allclose(whole.activations()[i]->max_val(), 1e-5, 1e-6),
               "greatest" + which);
        Expect(observers[i]->scale().allclose(whole.activations()[i]->scale(), 1e-5, 0),
               "scale" + which);
        Expect(observers[i]->zero_point().equal(whole.activations()[i]->zero_point()),
               "zero point" + which);
      }
    }
  }
  ObserveResiduals(group);
  group.Barrier();
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace muster::trainer

int main(int argc, char** argv) {
  return muster::trainer::Main(argc > 1 ? argv[1] : "gloo");
}

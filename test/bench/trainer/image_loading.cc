// How many images per second one thread gathers into normalized batches, as muster-train's loader
// does: an epoch of 60,000 images of 28 x 28 pixels in random order, in batches of 128.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/data/datasets.h"
#include "trainer/data/samples/image_samples.h"
#include "trainer/data/samples/image_sets.h"
#include "trainer/data/samples/sample_order.h"
#include "trainer/runtime/process_setup.h"

namespace muster::trainer {
namespace {

constexpr std::int64_t kImages = 60'000;
constexpr std::int64_t kBatch = 128;

void LoadImages(benchmark::State& state) {
  const auto images = std::make_shared<LabelledImages>(GenerateImageSet(kImages, /*seed=*/1));
  const ImageDataset dataset(images, MeasureNormalization(*images), AugmentationOptions());
  const std::vector<std::int64_t> order = RandomPermutation(kImages, /*seed=*/1);
  std::vector<std::vector<std::int64_t>> batches;
  for (auto begin = order.begin(); begin != order.end();) {
    const auto end = begin + std::min<std::int64_t>(kBatch, order.end() - begin);
    batches.emplace_back(begin, end);
    begin = end;
  }
  for ([[maybe_unused]] auto _ : state) {
    for (const std::vector<std::int64_t>& batch : batches) {
      const Batch loaded = dataset.Gather(batch, /*epoch=*/0, /*train=*/true);
      benchmark::DoNotOptimize(loaded.inputs.data_ptr());
    }
  }
  state.SetItemsProcessed(state.iterations() * kImages);
}
BENCHMARK(LoadImages)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace muster::trainer

int main(int argc, char** argv) {
  muster::trainer::SetUpProcess();  // muster-train's way with memory
  muster::trainer::SetThreads(1);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

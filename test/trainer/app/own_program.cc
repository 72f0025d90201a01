// A program with its own model, for tests. OWN_TROUBLE makes its recipe fail: "1 data" makes the
// function that opens the data throw on rank 1, "0 flags" the one that adds the flags on rank 0, "0
// thread" a thread of rank 0 while another waits for it.
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <torch/nn/modules/linear.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"

#include "trainer/train_main.h"

namespace mt = muster::trainer;

namespace {

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void ThrowIfAsked(const char* where) {
  if (Variable("OWN_TROUBLE") == absl::StrCat(Variable("RANK"), " ", where)) {
    throw std::runtime_error(absl::StrCat("the ", where, " cannot be had"));
  }
}

// Like NCCL's watchdog, which throws in its own thread while the main thread waits in vain.
void ThrowInThreadIfAsked() {
  std::thread([] { ThrowIfAsked("thread"); }).join();
}

// Sample i is i, and so is its target.
class Line : public mt::Dataset {
 public:
  std::int64_t size() const override { return 64; }
  mt::DataShape shape() const override { return {.kind = mt::DataShape::Kind::kSamples}; }
  mt::Batch Gather(const std::vector<std::int64_t>& indices, std::int64_t /*epoch*/,
                   bool /*train*/) const override {
    const auto samples = static_cast<std::int64_t>(indices.size());
    mt::Batch batch{at::empty({samples, 1}), at::empty({samples, 1})};
    for (std::int64_t row = 0; row < samples; ++row) {
      const auto value = static_cast<double>(indices[static_cast<std::size_t>(row)]) / 64;
      batch.inputs[row][0] = value;
      batch.targets[row][0] = value;
    }
    return batch;
  }
};

}  // namespace

int main(int argc, char** argv) {
  std::string note;
  std::int64_t units = 1;
  const mt::Recipe recipe{
      .name = "line",
      .data = [](const mt::DataOptions&) -> absl::StatusOr<mt::Splits> {
        ThrowIfAsked("data");
        return mt::Splits{std::make_shared<Line>(), std::make_shared<Line>()};
      },
      .model = [&units](const mt::DataShape&) -> absl::StatusOr<mt::Network> {
        const auto inner = std::make_shared<torch::nn::LinearImpl>(1, units);
        return mt::Network{.module = inner, .stages = {{"line", [inner](const at::Tensor& inputs) {
                                                          return inner->forward(inputs).mean(
                                                              /*dim=*/1, /*keepdim=*/true);
                                                        }}}};
      },
      .loss =
          [](const at::Tensor& outputs, const at::Tensor& targets) {
            ThrowInThreadIfAsked();
            return (outputs - targets).square().sum();
          },
      .metrics = {},
      .flags =
          [&](mt::FlagSet& flags) {
            ThrowIfAsked("flags");
            flags.Number("--units", units, 1, 64, "Units");
            flags.Text("--note", note, "Whatever is to be said");
          }};
  return mt::TrainMain(argc, argv, recipe);
}

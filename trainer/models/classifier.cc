#include "trainer/models/classifier.h"

#include <torch/torch.h>

namespace muster::trainer {
namespace {

namespace nn = torch::nn;

constexpr std::int64_t kClasses = 10;
constexpr std::int64_t kSide = 28;

nn::Conv2d Convolution(std::int64_t in, std::int64_t out) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, /*kernel_size=*/3).padding(1));
}

// Layers are pushed one by one: as arguments of one constructor they would be made in an order of
// the compiler's choice, and draw their initial values in that order.
// Pooling before the ReLU gives the same numbers as after it, from a quarter of the elements.
void AddCnn(nn::SequentialImpl& net) {
  net.push_back(Convolution(1, 16));
  net.push_back(nn::MaxPool2d(2));
  net.push_back(nn::ReLU());
  net.push_back(Convolution(16, 32));
  net.push_back(nn::MaxPool2d(2));
  net.push_back(nn::ReLU());
  net.push_back(nn::Flatten());
  net.push_back(nn::Linear(32 * 7 * 7, 128));
  net.push_back(nn::ReLU());
  net.push_back(nn::Linear(128, kClasses));
}

void AddMlp(nn::SequentialImpl& net) {
  net.push_back(nn::Flatten());
  net.push_back(nn::Linear(28 * 28, 256));
  net.push_back(nn::ReLU());
  net.push_back(nn::Linear(256, 256));
  net.push_back(nn::ReLU());
  net.push_back(nn::Linear(256, kClasses));
}

template <typename Items>
std::vector<NamedTensor> Named(const Items& items) {
  std::vector<NamedTensor> named;
  for (const auto& item : items) named.push_back({item.key(), item.value()});
  return named;
}

}  // namespace

Classifier::Classifier(ModelKind kind, std::uint64_t seed)
    : net_(std::make_shared<nn::SequentialImpl>()) {
  torch::manual_seed(seed);
  switch (kind) {
    case ModelKind::kCnn:
      AddCnn(*net_);
      break;
    case ModelKind::kMlp:
      AddMlp(*net_);
      break;
  }
}

void Classifier::MoveTo(const at::Device& device, at::ScalarType dtype) {
  net_->to(device, dtype);
}

at::Tensor Classifier::Forward(const at::Tensor& images) {
  // The same images described as channels-last, which makes pooling on a CPU twice as fast: with
  // one channel, both layouts are the same bytes.
  return net_->forward(images.view({-1, kSide, kSide, 1}).permute({0, 3, 1, 2}));
}

std::vector<NamedTensor> Classifier::Parameters() const {
  return Named(net_->named_parameters());
}

std::vector<NamedTensor> Classifier::Buffers() const {
  return Named(net_->named_buffers());
}

void Classifier::SetTraining(bool training) {
  net_->train(training);
}

}  // namespace muster::trainer

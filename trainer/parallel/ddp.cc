#include "trainer/parallel/ddp.h"

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>

#include "trainer/compat/torch_compat.h"

namespace muster::trainer {
namespace {

// Python's defaults (torch/nn/parallel/distributed.py).
constexpr std::int64_t kBucketBytes = std::int64_t{25} << 20;
constexpr std::int64_t kFirstBucketBytes = std::int64_t{1} << 20;
constexpr std::size_t kBroadcastBytes = std::size_t{250} << 20;

}  // namespace

struct DistributedDataParallel::Engine {
  compat::Group group;
  std::vector<at::Tensor> buffers;
  std::shared_ptr<c10d::Reducer> reducer;
  std::shared_ptr<c10d::Logger> logger;  // the reducer reports to it, and has only a weak_ptr
};

// The order of the steps is that of DistributedDataParallel.__init__ and its _ddp_init_helper.
DistributedDataParallel::DistributedDataParallel(const std::vector<NamedTensor>& parameters,
                                                 const std::vector<NamedTensor>& buffers,
                                                 ProcessGroup& group)
    : engine_(std::make_unique<Engine>()) {
  engine_->group = group.group();
  compat::ReducerParts parts;
  parts.group = engine_->group;
  parts.bucket_bytes_cap = kBucketBytes;
  parts.first_bucket_bytes_cap = kFirstBucketBytes;
  for (const NamedTensor& parameter : parameters) {
    parts.param_names[parts.params.size()] = parameter.name;
    parts.params.push_back(parameter.tensor);
  }
  for (const NamedTensor& buffer : buffers) engine_->buffers.push_back(buffer.tensor);

  compat::VerifyParametersAcrossRanks(engine_->group, parts.params);
  std::vector<at::Tensor> state;
  for (const at::Tensor& parameter : parts.params) state.push_back(parameter.detach());
  for (const at::Tensor& buffer : engine_->buffers) state.push_back(buffer.detach());
  c10d::broadcast_coalesced(engine_->group, state, kBroadcastBytes, /*rank=*/0);

  // One bucket for the first step; in the second the reducer makes buckets in the order in which
  // the gradients came. Until then the last parameters are taken to be the first to have gradients,
  // hence reversed.
  const std::vector<bool> sparse(parts.params.size(), false);
  std::tie(parts.bucket_indices, parts.per_bucket_size_limits) =
      c10d::compute_bucket_assignment_by_size(
          parts.params, {std::numeric_limits<std::size_t>::max() / 2}, sparse);
  std::reverse(parts.bucket_indices.begin(), parts.bucket_indices.end());
  std::reverse(parts.per_bucket_size_limits.begin(), parts.per_bucket_size_limits.end());

  engine_->reducer = compat::MakeReducer(std::move(parts));
  engine_->logger = std::make_shared<c10d::Logger>(engine_->reducer);
  engine_->reducer->set_logger(engine_->logger);
  engine_->logger->set_construction_data_and_log("muster-train", /*device_ids=*/{},
                                                 /*output_device=*/-1, /*broadcast_buffers=*/true,
                                                 /*has_sync_bn=*/false, /*static_graph=*/false);
}

DistributedDataParallel::~DistributedDataParallel() = default;

at::Tensor DistributedDataParallel::Forward(const std::function<at::Tensor()>& forward) {
  if (!torch::GradMode::is_enabled()) return forward();
  // The order is that of DistributedDataParallel.forward.
  engine_->logger->set_runtime_stats_and_log();
  engine_->reducer->prepare_for_forward();
  engine_->reducer->rebuild_buckets();
  if (!engine_->buffers.empty()) {
    const torch::NoGradGuard no_grad;
    c10d::broadcast_coalesced(engine_->group, engine_->buffers, kBroadcastBytes, /*rank=*/0);
  }
  at::Tensor output = forward();
  engine_->reducer->prepare_for_backward({});
  return output;
}

}  // namespace muster::trainer

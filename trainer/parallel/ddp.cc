#include "trainer/parallel/ddp.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include "absl/strings/str_cat.h"

#include "trainer/compat/torch_compat.h"
#include "trainer/parallel/comm_hooks.h"
#include "trainer/worker/timing.h"

namespace muster::trainer {
namespace {

std::int64_t Bytes(double mega_bytes) {
  return static_cast<std::int64_t>(mega_bytes * (1 << 20));
}

// With a static graph, the first step's gradients are averaged when all have been computed: only
// then is it known how often each parameter is used. This passes an output through, and in the
// backward pass tells the Reducer to do that, like _DDPSink in Python.
struct StaticGraphSink : torch::autograd::Function<StaticGraphSink> {
  struct Step {
    c10d::Reducer* reducer = nullptr;
    bool asked = false;
  };
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& output,
                            std::int64_t step) {
    context->saved_data["step"] = step;
    return output.view_as(output);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    auto* const step = reinterpret_cast<Step*>(context->saved_data["step"].toInt());
    if (!std::exchange(step->asked, true)) {
      torch::autograd::Engine::get_default_engine().queue_callback(
          [reducer = step->reducer] { reducer->delay_all_reduce(); });
    }
    return {gradients[0], at::Tensor()};
  }
};

// Counts as waiting what the backward pass of `output` does after all gradients have been computed:
// then the Reducer waits for the remaining buckets. It does so in a callback that it queues when
// the last bucket is full, and callbacks run in order, on this thread if everything is on the CPU.
// The output's gradient is computed before those of any parameter.
void CountWaiting(const at::Tensor& output) {
  output.register_hook([](const at::Tensor&) {
    auto& engine = torch::autograd::Engine::get_default_engine();
    engine.queue_callback([&engine] {
      auto waits = std::make_shared<WaitScope>();
      engine.queue_callback([waits = std::move(waits)]() mutable { waits.reset(); });
    });
  });
}

}  // namespace

// The reducer is before the logger, whose destructor uses it; its hook's thread ends with it.
struct DistributedDataParallel::Engine {
  Group& group;
  const DdpOptions options;
  std::vector<at::Tensor> params;  // those that require a gradient
  std::vector<std::string> names;  // of params
  std::vector<at::Tensor> buffers;
  std::int64_t step_bytes = 0;  // averaged in one step
  Traffic before{};             // the group's count at construction
  std::shared_ptr<c10d::Reducer> reducer{};
  std::shared_ptr<c10d::Logger> logger{};  // the reducer reports to it through a weak_ptr
  StaticGraphSink::Step first_step{};

  std::vector<std::string> gradient_order{};  // of the current buckets; empty: unknown
  std::int64_t synced_steps = 0;
  bool forward_sync = true;  // whether the previous step averaged

  void RegisterHook();
  // The parameter's name.
  const std::string& NameOf(const at::Tensor& param) const;
  // Names each bucket after its first parameter, for reports about operations.
  void NameBuckets();
  void MakeBuckets(compat::ReducerParts* parts, const std::vector<std::string>& order);
  // Rebuilds the buckets if the previous step has shown the order of the gradients.
  void RebuildBuckets();
};

const std::string& DistributedDataParallel::Engine::NameOf(const at::Tensor& param) const {
  const auto place = std::find_if(params.begin(), params.end(),
                                  [&](const at::Tensor& one) { return one.is_same(param); });
  return names[static_cast<std::size_t>(place - params.begin())];
}

void DistributedDataParallel::Engine::NameBuckets() {
  if (group.recorder() == nullptr) return;
  std::unordered_map<const void*, std::string> buckets;
  for (const c10d::GradBucket& bucket : reducer->get_grad_buckets(/*return_zero_tensors=*/false)) {
    const std::vector<at::Tensor> held = bucket.getParameters();
    const std::string& first = NameOf(held[0]);
    buckets[bucket.getBuffer().data_ptr()] =
        held.size() == 1 ? first : absl::StrCat(first, " and ", held.size() - 1, " more");
  }
  group.recorder()->NameBuffers(std::move(buckets));
}

void DistributedDataParallel::Engine::RegisterHook() {
  if (group.comm() == Comm::kShm) {
    group.PrepareAllReduce(static_cast<std::size_t>(step_bytes), options.shm);
    reducer->register_comm_hook(MakeThreadHook(group, options.comm_hook));
  } else if (options.comm_hook == CommHook::kFloat16) {
    reducer->register_builtin_comm_hook(c10d::BuiltinCommHookType::FP16_COMPRESS);
  } else if (options.comm_hook == CommHook::kBFloat16) {
    reducer->register_comm_hook(MakeBFloat16Hook(group));
  }
}

void DistributedDataParallel::Engine::MakeBuckets(compat::ReducerParts* parts,
                                                  const std::vector<std::string>& order) {
  const std::vector<std::size_t> caps = {static_cast<std::size_t>(parts->first_bucket_bytes_cap),
                                         static_cast<std::size_t>(parts->bucket_bytes_cap)};
  const std::vector<bool> sparse(parts->params.size(), false);
  const bool never_rebuilt = options.find_unused_parameters && !options.static_graph;
  if (!never_rebuilt &&
      std::is_permutation(order.begin(), order.end(), names.begin(), names.end())) {
    // As Reducer::rebuild_buckets does.
    std::vector<at::Tensor> ordered;
    std::vector<std::int64_t> places;
    for (const std::string& name : order) {
      places.push_back(std::find(names.begin(), names.end(), name) - names.begin());
      ordered.push_back(parts->params[static_cast<std::size_t>(places.back())]);
    }
    std::tie(parts->bucket_indices, parts->per_bucket_size_limits) =
        c10d::compute_bucket_assignment_by_size(ordered, caps, sparse, places);
    gradient_order = order;
    return;
  }
  // One bucket for the first step; in the second the reducer makes buckets in the order in which
  // gradients arrived. It cannot do that if steps may use different parameters. Until then the last
  // parameters are assumed to get their gradients first, hence reversed.
  const std::vector<std::size_t> all = {std::numeric_limits<std::size_t>::max() / 2};
  std::tie(parts->bucket_indices, parts->per_bucket_size_limits) =
      c10d::compute_bucket_assignment_by_size(parts->params, never_rebuilt ? caps : all, sparse);
  std::reverse(parts->bucket_indices.begin(), parts->bucket_indices.end());
  std::reverse(parts->per_bucket_size_limits.begin(), parts->per_bucket_size_limits.end());
}

void DistributedDataParallel::Engine::RebuildBuckets() {
  try {
    if (!reducer->rebuild_buckets()) return;
  } catch (const std::exception& error) {
    const auto sentence =
        UnusedParametersSentence(error.what(), names, group.rank(), options.find_unused_parameters);
    if (sentence) throw UnusedParametersError(*sentence);
    throw;
  }
  gradient_order.clear();
  for (const c10d::GradBucket& bucket : reducer->get_grad_buckets(/*return_zero_tensors=*/false)) {
    for (const at::Tensor& param : bucket.getParameters()) gradient_order.push_back(NameOf(param));
  }
  NameBuckets();
}

// The steps follow DistributedDataParallel.__init__ and its _ddp_init_helper.
DistributedDataParallel::DistributedDataParallel(const std::vector<NamedTensor>& parameters,
                                                 const std::vector<NamedTensor>& buffers,
                                                 Group& group, const DdpOptions& options,
                                                 const std::vector<std::string>& gradient_order)
    : engine_(std::make_unique<Engine>(Engine{.group = group, .options = options})) {
  Engine& e = *engine_;
  compat::ReducerParts parts;
  parts.group = group.Backend(Use::kGradients);
  e.before = group.traffic(Use::kGradients);
  parts.bucket_bytes_cap = Bytes(options.bucket_cap_mb);
  parts.first_bucket_bytes_cap = Bytes(options.first_bucket_mb);
  parts.find_unused_parameters = options.find_unused_parameters;
  parts.gradient_as_bucket_view = options.gradient_as_bucket_view;
  const std::int64_t narrow = options.comm_hook == CommHook::kNone ? 0 : 2;
  std::vector<at::Tensor> state;
  for (const NamedTensor& parameter : parameters) {
    state.push_back(parameter.tensor.detach());
    // The Reducer waits for a gradient of each parameter it has.
    if (!parameter.tensor.requires_grad()) continue;
    parts.param_names[parts.params.size()] = parameter.name;
    parts.params.push_back(parameter.tensor);
    e.names.push_back(parameter.name);
    e.step_bytes +=
        parameter.tensor.numel() *
        (narrow != 0 ? narrow : static_cast<std::int64_t>(parameter.tensor.element_size()));
  }
  e.params = parts.params;
  for (const NamedTensor& buffer : buffers) e.buffers.push_back(buffer.tensor);

  compat::VerifyParametersAcrossRanks(group.Backend(Use::kOther), parts.params);
  for (const at::Tensor& buffer : e.buffers) state.push_back(buffer.detach());
  group.Broadcast(state, /*root=*/0, Use::kOther);

  e.MakeBuckets(&parts, gradient_order);
  e.reducer = compat::MakeReducer(std::move(parts));
  e.logger = std::make_shared<c10d::Logger>(e.reducer);
  e.reducer->set_logger(e.logger);
  e.logger->set_construction_data_and_log("muster-train", /*device_ids=*/{}, /*output_device=*/-1,
                                          options.broadcast_buffers, /*has_sync_bn=*/false,
                                          options.static_graph);
  if (options.static_graph) {
    e.reducer->set_static_graph();
    e.logger->set_static_graph();
  }
  e.first_step.reducer = e.reducer.get();
  e.RegisterHook();
  e.NameBuckets();
}

DistributedDataParallel::~DistributedDataParallel() = default;

at::Tensor DistributedDataParallel::Forward(const std::function<at::Tensor()>& forward) {
  return Forward([&] { return std::vector<at::Tensor>{forward()}; })[0];
}

std::vector<at::Tensor> DistributedDataParallel::Forward(
    const std::function<std::vector<at::Tensor>()>& forward) {
  if (!at::GradMode::is_enabled()) return forward();
  Engine& e = *engine_;
  // The steps follow DistributedDataParallel.forward.
  if (sync_) {
    e.logger->set_runtime_stats_and_log();
    e.reducer->prepare_for_forward();
  }
  e.RebuildBuckets();
  if (e.options.broadcast_buffers && e.forward_sync) BroadcastBuffers();
  std::vector<at::Tensor> outputs = forward();
  e.forward_sync = sync_;
  if (!sync_) return outputs;

  // Given outputs, the reducer looks for parameters that they do not depend on.
  const bool search = e.options.find_unused_parameters && !e.options.static_graph;
  e.reducer->prepare_for_backward(search ? outputs : std::vector<at::Tensor>());
  if (e.options.static_graph && e.synced_steps == 0) {
    for (at::Tensor& output : outputs) {
      if (!output.requires_grad()) continue;
      output = StaticGraphSink::apply(output, reinterpret_cast<std::int64_t>(&e.first_step));
    }
  }
  ++e.synced_steps;
  // One hook for the whole pass: a second one would restart the count.
  if (WaitsAreCounted() && outputs[0].requires_grad() && outputs[0].is_cpu()) {
    CountWaiting(outputs[0]);
  }
  return outputs;
}

std::vector<std::string> DistributedDataParallel::GradientOrder() {
  // Otherwise the next step would do it first.
  engine_->RebuildBuckets();
  return engine_->gradient_order;
}

void DistributedDataParallel::BroadcastBuffers() {
  Engine& e = *engine_;
  if (e.buffers.empty()) return;
  e.group.Broadcast(e.buffers, /*root=*/0, Use::kOther);
}

DdpTimings DistributedDataParallel::timings() const {
  const auto data = engine_->logger->get_ddp_logging_data();
  const auto milliseconds = [&](const char* name) {
    const auto found = data.ints_map.find(name);
    return found == data.ints_map.end() ? 0.0 : static_cast<double>(found->second) * 1e-6;
  };
  return {.forward_ms = milliseconds("avg_forward_compute_time"),
          .backward_ms = milliseconds("avg_backward_compute_time"),
          .communication_ms = milliseconds("avg_backward_comm_time"),
          .overlap_ms = milliseconds("avg_backward_compute_comm_overlap_time"),
          .bucket_bytes = engine_->logger->get_bucket_sizes()};
}

Traffic DistributedDataParallel::traffic() const {
  const Engine& e = *engine_;
  Traffic traffic = e.group.traffic(Use::kGradients).Since(e.before);
  traffic.steps = e.synced_steps;
  return traffic;
}

}  // namespace muster::trainer

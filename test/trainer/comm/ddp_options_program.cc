// One rank of comm_test: compares every option of DistributedDataParallel with the same network
// trained on the whole batch by this process only. Exits with 0 if all agree; prints differences to
// stderr.
//
// usage: ddp_options_program gloo|shm
#include <cstdio>
#include <string>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros_like.h>
#include <torch/utils.h>

#include "trainer/comm/world.h"
#include "trainer/compat/torch_compat.h"
#include "trainer/parallel/ddp.h"
#include "trainer/worker/launcher_link.h"

namespace muster::trainer {
namespace {

constexpr std::int64_t kRankBatch = 16;

int failures = 0;

void Expect(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "not so: %s\n", what.c_str());
  ++failures;
}

// A network of two layers and an optional branch. Layer b can be used twice.
struct Net {
  explicit Net(std::uint64_t seed) {
    torch::manual_seed(seed);
    for (const auto& [name, sizes] :
         std::vector<std::pair<std::string, std::vector<std::int64_t>>>{{"a.weight", {20, 64}},
                                                                        {"b.weight", {64, 64}},
                                                                        {"aux.weight", {64, 64}},
                                                                        {"aux.bias", {64}},
                                                                        {"c.weight", {64, 5}}}) {
      parameters.push_back({name, at::randn(sizes).mul_(0.1).requires_grad_()});
    }
  }
  const at::Tensor& p(std::size_t i) const { return parameters[i].tensor; }

  at::Tensor Forward(const at::Tensor& x) const {
    at::Tensor h = at::tanh(at::matmul(x, p(0)));
    for (int i = 0; i < uses_of_b; ++i) h = at::tanh(at::matmul(h, p(1)));
    if (use_aux) h = h + at::matmul(h, p(2)) + p(3);
    return at::matmul(h, p(4));
  }
  std::vector<at::Tensor> Gradients() const {
    std::vector<at::Tensor> gradients;
    for (const NamedTensor& named : parameters) {
      const at::Tensor& gradient = named.tensor.grad();
      gradients.push_back(gradient.defined() ? gradient.clone() : at::zeros_like(named.tensor));
    }
    return gradients;
  }
  void Clear() const {
    for (const NamedTensor& named : parameters) named.tensor.mutable_grad().reset();
  }

  std::vector<NamedTensor> parameters;
  bool use_aux = true;
  int uses_of_b = 1;
};

bool Close(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b, double tolerance) {
  double scale = 0;
  for (const at::Tensor& t : b) scale = std::max(scale, t.abs().max().item<double>());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!((a[i] - b[i]).abs().max().item<double>() <= tolerance * scale)) return false;
  }
  return scale > 0;
}

class Checks {
 public:
  explicit Checks(Group& group) : group_(group) {}

  // A new batch, the same on every rank.
  void NewBatch() {
    torch::manual_seed(++batches_);
    x_ = at::randn({kRankBatch * group_.size(), 20});
    y_ = at::randn({kRankBatch * group_.size(), 5});
  }
  at::Tensor Part(const at::Tensor& t) const {
    return t.narrow(0, group_.rank() * kRankBatch, kRankBatch);
  }
  at::Tensor Loss(const Net& net, DistributedDataParallel& ddp) const {
    return at::mse_loss(ddp.Forward([&] { return net.Forward(Part(x_)); }), Part(y_));
  }

  // `steps` steps of both, with gradients compared and a plain descent after each.
  void Train(const std::string& what, Net& net, Net& whole, DistributedDataParallel& ddp, int steps,
             double tolerance) {
    for (int step = 0; step < steps; ++step) {
      NewBatch();
      net.Clear();
      whole.Clear();
      Loss(net, ddp).backward();
      at::mse_loss(whole.Forward(x_), y_).backward();
      Expect(Close(net.Gradients(), whole.Gradients(), tolerance),
             what + ": gradients are those of the whole batch");
      const at::NoGradGuard no_grad;
      for (std::size_t i = 0; i < net.parameters.size(); ++i) {
        // Both use the whole batch's gradients, so that rounding does not accumulate.
        const at::Tensor gradient = whole.p(i).grad();
        if (!gradient.defined()) continue;
        at::Tensor(net.p(i)).sub_(gradient, 0.1);
        at::Tensor(whole.p(i)).sub_(gradient, 0.1);
      }
    }
  }

  void BucketsAndViews() {
    for (const bool view : {true, false}) {
      Net net(100 + static_cast<std::uint64_t>(group_.rank()));  // DDP replaces them by rank 0's
      Net whole(100);
      const at::Tensor buffer = at::full({2}, group_.rank());
      DistributedDataParallel ddp(net.parameters, {{"buffer", buffer}}, group_,
                                  {.bucket_cap_mb = 0.01,
                                   .first_bucket_mb = 0.001,
                                   .gradient_as_bucket_view = view,
                                   .broadcast_buffers = view});
      Expect(ddp.timings().bucket_bytes.size() == 1, "all gradients are in one bucket at first");
      const std::string what = view ? "bucket view" : "no bucket view";
      Train(what, net, whole, ddp, 4, 1e-6);
      Expect(ddp.timings().bucket_bytes.size() == 4, "buckets are made anew by their caps");
      const DdpTimings timings = ddp.timings();
      Expect(timings.forward_ms > 0 && timings.backward_ms > 0 && timings.communication_ms > 0,
             "the logger measures");
      Expect(buffer.eq(0).all().item<bool>(), "buffers are rank 0's");
      buffer.fill_(group_.rank() + 1);
      Train(what, net, whole, ddp, 1, 1e-6);
      Expect(buffer.eq(view ? 1 : group_.rank() + 1).all().item<bool>(),
             "buffers are broadcast before a step exactly if that is asked for");

      const Traffic traffic = ddp.traffic();
      const std::int64_t bytes = 4 * (20 * 64 + 64 * 64 * 2 + 64 + 64 * 5);
      const std::int64_t formula = 5 * RingBytes(group_.size(), bytes);
      Expect(traffic.steps == 5 && traffic.formula_bytes == formula, "the formula is the ring's");
      const bool counts = group_.comm() == Comm::kShm && group_.layout().hosts == 1;
      Expect(traffic.counted_bytes.has_value() == counts, "what c10d sends nobody counts");
      // Shares are rounded to cache lines, in shared memory.
      Expect(!counts || std::abs(*traffic.counted_bytes - formula) <= formula / 20,
             "counted bytes are those of the formula");
    }
  }

  void NoSync() {
    for (const bool view : {true, false}) {
      Net net(5);
      const Net whole(5);
      DistributedDataParallel ddp(net.parameters, {}, group_, {.gradient_as_bucket_view = view});
      for (int step = 0; step < 3; ++step) {
        NewBatch();
        net.Clear();
        whole.Clear();
        const auto quarter = [&](int k) {
          const auto cut = [&](const at::Tensor& t) { return Part(t).narrow(0, k * 4, 4); };
          const at::Tensor out = ddp.Forward([&] { return net.Forward(cut(x_)); });
          (at::mse_loss(out, cut(y_)) / 4).backward();
        };
        {
          const auto no_sync = ddp.NoSync();
          for (int k = 0; k < 3; ++k) quarter(k);
        }
        const double mine = net.p(0).grad().sum().item<double>();
        const double mean = group_.Sum({mine})[0] / group_.size();
        Expect(group_.size() == 1 || std::abs(mine - mean) > 1e-6,
               "no_sync leaves each rank its own gradients");
        quarter(3);
        at::mse_loss(whole.Forward(x_), y_).backward();
        Expect(Close(net.Gradients(), whole.Gradients(), 1e-6),
               "no_sync: accumulated gradients are those of the whole batch");
      }
      Expect(ddp.traffic().steps == 3, "steps without exchange are not counted");
    }
  }

  void FindUnused() {
    Net net(6);
    DistributedDataParallel ddp(net.parameters, {}, group_, {.find_unused_parameters = true});
    for (int step = 0; step < 3; ++step) {
      NewBatch();
      net.use_aux = group_.rank() == 0;  // unknown to the other ranks
      net.Clear();
      Loss(net, ddp).backward();
      std::vector<at::Tensor> expected;
      for (int rank = 0; rank < group_.size(); ++rank) {
        Net other(6);
        other.use_aux = rank == 0;
        const auto cut = [&](const at::Tensor& t) {
          return t.narrow(0, rank * kRankBatch, kRankBatch);
        };
        at::mse_loss(other.Forward(cut(x_)), cut(y_)).backward();
        const std::vector<at::Tensor> gradients = other.Gradients();
        if (rank == 0) expected = gradients;
        for (std::size_t i = 0; rank > 0 && i < gradients.size(); ++i) expected[i] += gradients[i];
      }
      for (at::Tensor& gradient : expected) gradient /= group_.size();
      Expect(Close(net.Gradients(), expected, 1e-6),
             "a parameter that one rank uses gets the mean over all");
    }
    net.use_aux = false;
    net.Clear();
    Loss(net, ddp).backward();
    Expect(!net.p(2).grad().defined(), "a parameter that no rank uses gets no gradient");
    Expect(net.p(4).grad().defined(), "the others get theirs");
  }

  void UnusedWithoutTheFlag() {
    Net net(7);
    net.use_aux = false;
    DistributedDataParallel ddp(net.parameters, {}, group_);
    std::string sentence;
    NewBatch();
    Loss(net, ddp).backward();
    try {
      Loss(net, ddp);
    } catch (const UnusedParametersError& error) {
      sentence = error.what();
    }
    Expect(sentence == "the last step's loss on rank " + std::to_string(group_.rank()) +
                           " did not depend on parameters aux.weight, aux.bias, so not all "
                           "gradients were averaged: set find_unused_parameters "
                           "(--find-unused-parameters), or leave them out of the model",
           "unused parameters are named; the sentence is: " + sentence);
  }

  void StaticGraph() {
    Net net(8);
    Net whole(8);
    for (Net* each : {&net, &whole}) {
      each->use_aux = false;
      each->uses_of_b = 2;
    }
    DistributedDataParallel ddp(net.parameters, {}, group_, {.static_graph = true});
    Train("static graph", net, whole, ddp, 4, 1e-6);
  }

  void SeveralOutputs() {
    Net net(9);
    const Net whole(9);
    DistributedDataParallel ddp(net.parameters, {}, group_, {.static_graph = true});
    for (int step = 0; step < 3; ++step) {
      NewBatch();
      net.Clear();
      whole.Clear();
      const auto both = ddp.Forward([&] {
        const at::Tensor out = net.Forward(Part(x_));
        return std::vector<at::Tensor>{out.narrow(1, 0, 2), out.narrow(1, 2, 3)};
      });
      at::mse_loss(at::cat(both, 1), Part(y_)).backward();
      at::mse_loss(whole.Forward(x_), y_).backward();
      Expect(Close(net.Gradients(), whole.Gradients(), 1e-6), "a model of two outputs");
    }
  }

  void Compression() {
    for (const CommHook hook : {CommHook::kFloat16, CommHook::kBFloat16}) {
      const bool half = hook == CommHook::kFloat16;
      Net net(10);
      Net whole(10);
      DistributedDataParallel ddp(net.parameters, {}, group_,
                                  {.bucket_cap_mb = 0.01, .comm_hook = hook});
      Train(half ? "float16" : "bfloat16", net, whole, ddp, 3, half ? 2e-3 : 1.6e-2);
      const std::vector<at::Tensor> gradients = net.Gradients();
      const at::Tensor narrow = gradients[0].to(half ? at::kHalf : at::kBFloat16).to(at::kFloat);
      Expect(group_.comm() != Comm::kShm || narrow.equal(gradients[0]),
             "what came back is of the narrow type");
      const std::int64_t bytes = 2 * (20 * 64 + 64 * 64 * 2 + 64 + 64 * 5);
      const bool gathers = !half && group_.comm() == Comm::kGloo;
      Expect(ddp.traffic().formula_bytes == 3 * (gathers ? GatherBytes(group_.size(), bytes)
                                                         : RingBytes(group_.size(), bytes)),
             "compressed gradients are half the bytes; Gloo brings all bfloat16s to everybody");
    }
  }

 private:
  Group& group_;
  std::uint64_t batches_ = 0;
  at::Tensor x_;
  at::Tensor y_;
};

int Main(const std::string& comm) {
  const Environment env = ReadEnvironment(LookupInProcess).value();
  const Comm asked = comm == "shm" ? Comm::kShm : Comm::kGloo;
  const auto world = World::Join(env, asked, std::chrono::seconds(60)).value();
  Group& group = world->all();
  Expect(group.comm() == asked, "the group runs on what was asked for");
  Checks checks(group);
  checks.BucketsAndViews();
  checks.NoSync();
  checks.FindUnused();
  checks.UnusedWithoutTheFlag();
  checks.StaticGraph();
  checks.SeveralOutputs();
  checks.Compression();
  group.Barrier();
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace muster::trainer

int main(int argc, char** argv) {
  return muster::trainer::Main(argc > 1 ? argv[1] : "");
}

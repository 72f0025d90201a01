// The differences in c10d between the LibTorch versions that the trainer supports (1.13 to 2.x),
// and nothing else. No file of trainer/ outside compat/ may name a version. Include it only from
// .cc files that need it; it takes 8 s to compile.
//
// Where a signature differs, the code checks what the class accepts instead of a version number, so
// that it may also work with versions not known yet.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#ifdef USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#endif
#ifdef USE_C10D_NCCL
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

#include "trainer/compat/torch_version.h"

namespace muster::trainer::compat {

using Store = c10::intrusive_ptr<c10d::Store>;
using Group = c10::intrusive_ptr<c10d::ProcessGroup>;

// A client of the TCPStore at host:port; when `serve` is true, this process also serves the store.
// Throws what c10d throws.
inline Store OpenTcpStore(const std::string& host, std::uint16_t port, bool serve,
                          std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = port;
  options.isServer = serve;
  // Do not wait for the other ranks here: the process group does, and can say which are missing.
  options.waitWorkers = false;
  options.timeout = timeout;
#if MUSTER_TORCH_VERSION >= 201
  // libuv is the default since 2.4, but Debian's 2.6 is built without it, and using it throws.
  options.useLibUV = false;
#endif
  return c10::make_intrusive<c10d::TCPStore>(host, options);
}

#if MUSTER_TORCH_VERSION >= 200
// Since 2.0 a ProcessGroup is a dispatcher that owns one backend per device type.
// `device` has an index if the backend is to use that device and no other.
template <typename Backend>
Group WrapBackend(const Store& store, int rank, int size, c10d::ProcessGroup::BackendType type,
                  const at::Device& device, const c10::intrusive_ptr<Backend>& backend) {
#if MUSTER_TORCH_VERSION >= 206
  auto group = c10::make_intrusive<c10d::ProcessGroup>(store, rank, size);
  group->setDefaultBackend(type);
  // First, as setBackend() is what tells the backend.
  if (device.has_index()) group->setBoundDeviceId(device);
#else
  auto group = c10::make_intrusive<c10d::ProcessGroup>(
      store, rank, size,
      c10::make_intrusive<c10d::ProcessGroup::Options>(
          type == c10d::ProcessGroup::BackendType::GLOO ? "gloo" : "nccl"));
#endif
  group->setBackend(device.type(), type, backend);
  return group;
}
#endif

// Whether Gloo was there when this was compiled: its headers do not come with every LibTorch.
inline constexpr bool kHasGloo =
#ifdef USE_C10D_GLOO
    true;
#else
    false;
#endif

// Joins the Gloo group of `size` ranks that meet in `store`; blocks until all have joined, for at
// most `timeout`. Sockets are bound to `interfaces`, names with commas between them, if there are
// any, else to the local address `address`. Throws what c10d throws. Call it only if kHasGloo is
// true.
inline Group JoinGlooGroup(const Store& store, int rank, int size,
                           std::chrono::milliseconds timeout, const std::string& interfaces,
                           const std::string& address) {
#ifdef USE_C10D_GLOO
  using Gloo = c10d::ProcessGroupGloo;
  auto options = Gloo::Options::create(timeout);
  std::istringstream names(interfaces);
  for (std::string name; std::getline(names, name, ',');) {
    options->devices.push_back(Gloo::createDeviceForInterface(name));
  }
  if (interfaces.empty()) options->devices.push_back(Gloo::createDeviceForHostname(address));
  auto gloo = c10::make_intrusive<Gloo>(store, rank, size, options);
#if MUSTER_TORCH_VERSION >= 200
  return WrapBackend(store, rank, size, c10d::ProcessGroup::BackendType::GLOO, at::kCPU, gloo);
#else
  return gloo;  // Before 2.0 each backend is a ProcessGroup itself.
#endif
#else
  (void)store, (void)rank, (void)size, (void)timeout, (void)interfaces, (void)address;
  TORCH_CHECK(false, "muster-train was built without Gloo");
#endif
}

// Has `backend` connect now, where left to itself it does so in its first operation.
template <typename Backend>
void Connect(Backend& backend, c10d::ProcessGroup& group, const at::Device& device) {
  if constexpr (requires { backend.eagerConnectSingleDevice(device); }) {
    backend.eagerConnectSingleDevice(device);
  } else {
    std::vector<at::Tensor> tensors = {at::zeros({1}, device)};
    group.allreduce(tensors)->wait();
    tensors[0].cpu();  // until it is done, and not only under way
  }
}

// Whether this LibTorch was built with NCCL at all.
inline constexpr bool kHasNccl =
#ifdef USE_C10D_NCCL
    true;
#else
    false;
#endif

// Before 2.1 or so there is nothing to call: the destructor does it, and says nothing.
template <typename Backend>
void ShutDown(Backend& backend) {
  if constexpr (requires { backend.shutdown(); }) backend.shutdown();
}

// Joins the NCCL group of `size` ranks, and connects this one's `device`, a GPU which must be the
// current one: blocks until all have joined, however long that takes. Call it only if kHasNccl is
// true.
inline Group JoinNcclGroup(const Store& store, int rank, int size,
                           std::chrono::milliseconds timeout, const at::Device& device) {
#ifdef USE_C10D_NCCL
  using Nccl = c10d::ProcessGroupNCCL;
  auto options = Nccl::Options::create(/*is_high_priority_stream=*/false);
  options->timeout = timeout;
  auto nccl = c10::make_intrusive<Nccl>(store, rank, size, options);
#if MUSTER_TORCH_VERSION >= 200
  Group group = WrapBackend(store, rank, size, c10d::ProcessGroup::BackendType::NCCL, device, nccl);
#else
  Group group = nccl;
#endif
  Connect(*nccl, *group, device);
  return group;
#else
  (void)store, (void)rank, (void)size, (void)timeout, (void)device;
  TORCH_CHECK(false, "this LibTorch was built without NCCL");
#endif
}

// Ends the threads and connections of what JoinNcclGroup() has returned, at the end of a job in
// which nothing failed: every member calls it, and it may wait for the others.
inline void ShutDownNcclGroup([[maybe_unused]] const Group& group) {
#if defined(USE_C10D_NCCL) && MUSTER_TORCH_VERSION >= 200
  const auto backend = group->getBackend(at::kCUDA);
  if (auto* const nccl = dynamic_cast<c10d::ProcessGroupNCCL*>(backend.get())) ShutDown(*nccl);
#endif
}

// The arguments of Reducer's constructor, under their names there.
struct ReducerParts {
  std::vector<at::Tensor> params;
  std::vector<std::vector<std::size_t>> bucket_indices;
  std::vector<std::size_t> per_bucket_size_limits;
  Group group;
  std::int64_t bucket_bytes_cap = 0;
  std::int64_t first_bucket_bytes_cap = 0;
  std::unordered_map<std::size_t, std::string> param_names;
  bool find_unused_parameters = false;
  bool gradient_as_bucket_view = true;
};

// Creates a Reducer for dense parameters. After 2.7 its constructor lost per_bucket_size_limits and
// gained two bools, and later a list of bucket sizes.
template <typename Reducer = c10d::Reducer>
std::shared_ptr<Reducer> MakeReducer(ReducerParts parts) {
  using Params = std::vector<at::Tensor>;
  using Buckets = std::vector<std::vector<std::size_t>>;
  using Limits = std::vector<std::size_t>;
  using Sparse = std::vector<bool>;
  using Names = std::unordered_map<std::size_t, std::string>;
  Sparse sparse(parts.params.size(), false);
  const bool find_unused = parts.find_unused_parameters;
  const bool as_view = parts.gradient_as_bucket_view;
  if constexpr (std::is_constructible_v<Reducer, Params, Buckets, Limits, Group, Sparse,
                                        std::int64_t, bool, bool, Names, std::int64_t>) {
    return std::make_shared<Reducer>(std::move(parts.params), std::move(parts.bucket_indices),
                                     std::move(parts.per_bucket_size_limits), parts.group,
                                     std::move(sparse), parts.bucket_bytes_cap, find_unused,
                                     as_view, std::move(parts.param_names),
                                     parts.first_bucket_bytes_cap);
  } else if constexpr (std::is_constructible_v<Reducer, Params, Buckets, Group, Sparse,
                                               std::int64_t, bool, bool, Names, std::int64_t, bool,
                                               bool>) {
    return std::make_shared<Reducer>(
        std::move(parts.params), std::move(parts.bucket_indices), parts.group, std::move(sparse),
        parts.bucket_bytes_cap, find_unused, as_view, std::move(parts.param_names),
        parts.first_bucket_bytes_cap, /*skip_all_reduce_unused_params=*/false,
        /*use_python_reducer=*/false);
  } else {
    return std::make_shared<Reducer>(
        std::move(parts.params), std::move(parts.bucket_indices), parts.group, std::move(sparse),
        parts.bucket_bytes_cap, find_unused, as_view, std::move(parts.param_names),
        parts.first_bucket_bytes_cap, /*skip_all_reduce_unused_params=*/false,
        /*use_python_reducer=*/false, /*bucket_bytes_cap_list=*/std::vector<std::int64_t>());
  }
}

// Throws on every rank unless all ranks have parameters of the same shapes in the same order.
inline void VerifyParametersAcrossRanks(const Group& group, const std::vector<at::Tensor>& params) {
  c10d::verify_params_across_processes(group, params, {});
}

}  // namespace muster::trainer::compat

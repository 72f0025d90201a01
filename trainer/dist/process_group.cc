#include "trainer/dist/process_group.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "trainer/compat/torch_compat.h"
#include "trainer/core/one_line.h"
#include "trainer/dist/local_address.h"

namespace muster::trainer {
namespace {

// kGloo or kNccl for what was asked for.
absl::StatusOr<Comm> Choose(Comm asked, const Environment& env) {
  if (asked == Comm::kGloo || (asked == Comm::kAuto && !compat::kHasNccl)) return Comm::kGloo;
  if (!compat::kHasNccl) {
    return absl::InvalidArgumentError("--comm nccl: this LibTorch was built without NCCL");
  }
  const auto devices = static_cast<int>(torch::cuda::device_count());
  if (asked == Comm::kAuto && devices == 0) return Comm::kGloo;
  if (env.local_rank >= devices) {
    return absl::InvalidArgumentError(absl::StrCat("NCCL needs a GPU for local rank ",
                                                   env.local_rank, ", and ", devices,
                                                   devices == 1 ? " is" : " are", " visible"));
  }
  return Comm::kNccl;
}

std::string ArrivalKey(int rank) {
  return absl::StrCat("arrived/", rank);
}

// The ranks that never reached `store`, as a phrase; empty when there are none or the store does
// not answer.
std::string WhoIsMissing(const compat::Store& store, int size) {
  std::vector<int> missing;
  try {
    for (int rank = 0; rank < size; ++rank) {
      if (!store->check({ArrivalKey(rank)})) missing.push_back(rank);
    }
  } catch (const std::exception&) {
    return "";
  }
  if (missing.empty()) return "";
  return absl::StrCat(missing.size() == 1 ? "rank " : "ranks ", absl::StrJoin(missing, ", "),
                      " did not arrive; ");
}

}  // namespace

// The group is declared last: it goes first, while the store it uses is still there.
struct ProcessGroup::Joined {
  compat::Store server;  // the connection to the store, and on rank 0 the store itself
  compat::Store store;   // the part of it that belongs to this round
  compat::Group group;
};

ProcessGroup::ProcessGroup(const Environment& env, Comm comm, const at::Device& device,
                           std::unique_ptr<Joined> joined)
    : rank_(env.rank),
      size_(env.world_size),
      comm_(comm),
      device_(device),
      joined_(std::move(joined)) {}

ProcessGroup::~ProcessGroup() = default;

absl::StatusOr<std::unique_ptr<ProcessGroup>> ProcessGroup::Join(
    const Environment& env, Comm asked, std::chrono::milliseconds timeout) {
  const absl::StatusOr<Comm> comm = Choose(asked, env);
  if (!comm.ok()) return comm.status();
  const bool alone = env.world_size == 1;
  const at::Device device =
      *comm == Comm::kNccl ? at::Device(at::kCUDA, env.local_rank) : at::Device(at::kCPU);

  // Gloo would listen on whatever address the host's name resolves to, which others may not reach.
  std::string address = "127.0.0.1";
  if (!alone && *comm == Comm::kGloo && env.gloo_interface.empty()) {
    absl::StatusOr<std::string> found = LocalAddressTowards(env.master_addr, env.master_port);
    if (!found.ok()) return found.status();
    address = *std::move(found);
  }

  auto joined = std::make_unique<Joined>();
  try {
    if (alone) {
      joined->server = c10::make_intrusive<c10d::HashStore>();
    } else {
      const bool serve = env.rank == 0 && !env.agent_store;
      joined->server = compat::OpenTcpStore(env.master_addr, env.master_port, serve, timeout);
    }
    // A store that outlives a restart still holds the addresses of those who were there before it.
    joined->store = c10::make_intrusive<c10d::PrefixStore>(
        absl::StrCat("muster-train/", env.restart_count), joined->server);
    joined->store->set(ArrivalKey(env.rank), std::vector<std::uint8_t>{1});
    joined->group = *comm == Comm::kNccl
                        ? compat::JoinNcclGroup(joined->store, env.rank, env.world_size, timeout,
                                                env.local_rank)
                        : compat::JoinGlooGroup(joined->store, env.rank, env.world_size, timeout,
                                                alone ? "" : env.gloo_interface, address);
  } catch (const std::exception& error) {
    const std::string why = OneLine(error);
    if (!joined->server && absl::StrContains(why, "Address already in use")) {
      return absl::UnavailableError(absl::StrCat("serve the store at ", env.master_addr, ":",
                                                 env.master_port, ": address already in use"));
    }
    const std::string missing = joined->store ? WhoIsMissing(joined->store, env.world_size) : "";
    return absl::UnavailableError(absl::StrCat("join the process group of ", env.world_size, " at ",
                                               env.master_addr, ":", env.master_port, ": ", missing,
                                               why));
  }
  return std::unique_ptr<ProcessGroup>(new ProcessGroup(env, *comm, device, std::move(joined)));
}

std::vector<double> ProcessGroup::Sum(const std::vector<double>& values) {
  std::vector<at::Tensor> tensors = {torch::tensor(values, torch::kDouble).to(device_)};
  joined_->group->allreduce(tensors)->wait();
  const at::Tensor sums = tensors[0].cpu();
  const auto* first = sums.data_ptr<double>();
  return std::vector<double>(first, first + sums.numel());
}

void ProcessGroup::Barrier() {
  Sum({0});
}

const c10::intrusive_ptr<c10d::ProcessGroup>& ProcessGroup::group() const {
  return joined_->group;
}

}  // namespace muster::trainer

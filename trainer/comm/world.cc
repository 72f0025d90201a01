#include "trainer/comm/world.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/cuda.h>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "trainer/comm/host/shm_segment.h"
#include "trainer/comm/host/transport.h"
#include "trainer/comm/round_store.h"
#include "trainer/comm/shm_exchange.h"
#include "trainer/compat/gpu_facts.h"
#include "trainer/compat/torch_compat.h"
#include "trainer/runtime/failure.h"

namespace muster::trainer {
namespace {

constexpr std::size_t kSentenceBytes = 300;

std::string ArrivalKey(int rank) {
  return absl::StrCat("arrived/", rank);
}

// The `ranks` that never reached `store`, as a phrase; empty if there are none or the store does
// not answer.
std::string WhoIsMissing(const compat::Store& store, const std::vector<int>& ranks) {
  std::vector<int> missing;
  try {
    for (const int rank : ranks) {
      if (!store->check({ArrivalKey(rank)})) missing.push_back(rank);
    }
  } catch (const std::exception&) {
    return "";
  }
  if (missing.empty()) return "";
  return absl::StrCat(missing.size() == 1 ? "rank " : "ranks ", absl::StrJoin(missing, ", "),
                      " did not arrive; ");
}

// Optional: the ranks' own error messages do not depend on it.
std::optional<worker::FlightMemory> OpenLaunchersLog(const Environment& env) {
  if (env.flight_log.empty()) return std::nullopt;
  absl::StatusOr<worker::FlightMemory> log =
      worker::FlightMemory::Open(env.flight_log, static_cast<std::size_t>(env.flight_offset));
  if (!log.ok()) return std::nullopt;
  return *std::move(log);
}

// NCCL waits forever for a rank that has died meanwhile, so it is abandoned after the timeout.
compat::Group JoinNcclInTime(const compat::Store& store, int rank, int size,
                             std::chrono::milliseconds timeout, const at::Device& device) {
  return CallWithin<compat::Group>(
      timeout, "connect by NCCL (NCCL_DEBUG=INFO shows which rank or network it waits for)", [=] {
        c10::impl::VirtualGuardImpl(at::kCUDA).setDevice(device);
        return compat::JoinNcclGroup(store, rank, size, timeout, device);
      });
}

std::vector<int> UpTo(int ranks) {
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

// The group is declared last, so that it is destroyed before the store it uses.
struct World::Joined {
  compat::Store store;     // on rank 0 the one that serves all ranks
  std::string interfaces;  // what Gloo's sockets are bound to: these, or the address
  std::string address;
  std::vector<compat::Group> nccl_groups;  // except that of all ranks
  compat::Group group;
};

World::World(const Environment& env, std::chrono::milliseconds timeout, const at::Device& device,
             std::unique_ptr<Joined> joined)
    : rank_(env.rank),
      size_(env.world_size),
      timeout_(timeout),
      device_(device),
      launchers_log_(OpenLaunchersLog(env)),
      joined_(std::move(joined)) {}

World::~World() {
  if (comm() != Comm::kNccl) return;
  // Otherwise c10d's destructors shut them down with a warning.
  for (const compat::Group& group : joined_->nccl_groups) compat::ShutDownNcclGroup(group);
  compat::ShutDownNcclGroup(joined_->group);
}

absl::StatusOr<std::unique_ptr<World>> World::Join(const Environment& env, Comm asked,
                                                   std::chrono::milliseconds timeout) {
  const bool alone = env.world_size == 1;
  const GpuFacts gpus = {
      .has_nccl = compat::kHasNccl,
      .has_gloo = compat::kHasGloo,
      .visible = static_cast<int>(torch::cuda::device_count()),
      .local_rank = alone || env.has_local_rank ? std::optional(env.local_rank) : std::nullopt};
  const absl::StatusOr<std::string> why_not_nccl = WhyNotNccl(asked, gpus);
  if (!why_not_nccl.ok()) {
    TellUnfit(env, why_not_nccl.status(), timeout);
    return why_not_nccl.status();
  }
  const bool nccl = why_not_nccl->empty();
  const at::Device device =
      nccl ? at::Device(at::kCUDA, static_cast<at::DeviceIndex>(env.local_rank))
           : at::Device(at::kCPU);
  // "The" GPU is this rank's from now on, not the first one.
  if (nccl) c10::impl::VirtualGuardImpl(at::kCUDA).setDevice(device);

  auto joined = std::make_unique<Joined>();
  joined->interfaces = alone ? "" : env.gloo_interface;
  // Otherwise Gloo listens wherever the host's name resolves to, which other hosts may not reach.
  joined->address = "127.0.0.1";
  if (!alone && !nccl && env.gloo_interface.empty()) {
    absl::StatusOr<std::string> found = LocalAddressTowards(env.master_addr, env.master_port);
    if (!found.ok()) return found.status();
    joined->address = *std::move(found);
  }
  try {
    joined->store = OpenRoundStore(env, timeout);
    joined->store->set(ArrivalKey(env.rank), std::vector<std::uint8_t>{1});
    const absl::Status fit = CallRoll(*joined->store, env, *why_not_nccl);
    if (!fit.ok()) return fit;
    joined->group = nccl ? JoinNcclInTime(joined->store, env.rank, env.world_size, timeout, device)
                         : compat::JoinGlooGroup(joined->store, env.rank, env.world_size, timeout,
                                                 joined->interfaces, joined->address);
  } catch (const std::exception& error) {
    const std::string why = OneLine(error);
    if (!joined->store && absl::StrContains(why, "Address already in use")) {
      return absl::UnavailableError(absl::StrCat("serve the store at ", env.master_addr, ":",
                                                 env.master_port, ": address already in use"));
    }
    const std::string missing =
        joined->store ? WhoIsMissing(joined->store, UpTo(env.world_size)) : "";
    return absl::UnavailableError(absl::StrCat("join the process group of ", env.world_size, " at ",
                                               env.master_addr, ":", env.master_port, ": ", missing,
                                               why));
  }
  std::unique_ptr<World> world(new World(env, timeout, device, std::move(joined)));
  try {
    const absl::Status chosen = world->Choose(asked, nccl);
    if (!chosen.ok()) return chosen;
  } catch (const std::exception& error) {
    // A rank has died meanwhile, and c10d's destructors may wait for it.
    static_cast<void>(world.release());
    return absl::UnavailableError(
        absl::StrCat("ask the ", env.world_size, " ranks where they are: ", OneLine(error)));
  }
  return world;
}

MeetOverGloo World::MeetAt(const std::string& meeting) {
  return [this, meeting](const std::string& name, int place, int ranks) {
    return compat::JoinGlooGroup(
        c10::make_intrusive<c10d::PrefixStore>(absl::StrCat(meeting, name), joined_->store), place,
        ranks, timeout_, joined_->interfaces, joined_->address);
  };
}

MeetForCalls World::CallAt(const std::string& meeting, int rank, int size) {
  return [=, this](std::shared_ptr<GroupMeter> meter, RemoteCalls::Handler handler) {
    const std::string& interfaces = joined_->interfaces;
    const RemoteCalls::Place place = {
        .store = c10::make_intrusive<c10d::PrefixStore>(meeting + "calls", joined_->store),
        .interface = interfaces.empty() ? InterfaceOf(joined_->address)
                                        : interfaces.substr(0, interfaces.find(',')),
        .rank = rank,
        .size = size,
        .timeout = timeout_};
    return std::make_unique<RemoteCalls>(place, std::move(meter), std::move(handler));
  };
}

GroupFacts World::FactsOfAll() {
  GroupFacts facts = {.rank = rank_,
                      .layout = layout_,
                      .device = device_,
                      .comm = choice_.comm,
                      .timeout = timeout_,
                      .recorder = recorder_.get()};
  facts.members = UpTo(size_);
  facts.meet = MeetAt("");
  facts.calls = CallAt("", rank_, size_);
  return facts;
}

void World::MakeRecorder(absl::StatusOr<ShmSegment> segment, const HostLayout& layout) {
  if (!segment.ok() && !launchers_log_) return;
  std::optional<ShmSegment> shared;
  if (segment.ok()) shared = *std::move(segment);
  recorder_ = std::make_unique<FlightRecorder>(std::move(shared), layout, rank_,
                                               std::exchange(launchers_log_, std::nullopt));
}

absl::Status World::Choose(Comm asked, bool nccl) {
  asked_ = asked;
  Group met(FactsOfAll(), joined_->group);  // for exchanging text before a transport is chosen
  hosts_ = met.Gather(HostId(), kHostIdBytes);
  const HostLayout layout = LayOutHosts(hosts_, rank_);
  // A small segment that every rank can use; how much gradients need is known once there is a
  // model.
  const auto gather = [&](const std::string& mine) { return met.Gather(mine, kSentenceBytes); };
  absl::StatusOr<ShmSegment> segment = MakeSharedSegment(
      layout, met.members(), FlightRecorder::SegmentBytes(layout.local_ranks.size()), gather);
  shm_trouble_ = std::string(segment.status().message());
  MakeRecorder(std::move(segment), layout);
  if (shm_trouble_.empty() && asked == Comm::kAuto && !nccl) {
    // Freed at once: this checks whether there will be enough for gradients.
    shm_trouble_ =
        std::string(MakeSharedSegment(layout, met.members(),
                                      AllReducer::LeastBytes(layout.local_ranks.size()), gather)
                        .status()
                        .message());
  }
  if (nccl) {
    // NCCL finds the ranks' hosts by itself.
    for (int rank = 0; rank < size_; ++rank) {
      hosts_[static_cast<std::size_t>(rank)] = absl::StrCat(rank);
    }
    layout_ = LayOutHosts(hosts_, rank_);
    const auto gpus = torch::cuda::device_count();
    choice_ = {Comm::kNccl,
               absl::StrCat("NCCL: ", gpus, gpus == 1 ? " GPU is visible" : " GPUs are visible",
                            "; ", compat::DescribeGpu(device_))};
    all_ = std::make_unique<Group>(FactsOfAll(), joined_->group);
    return absl::OkStatus();
  }
  layout_ = layout;
  absl::StatusOr<CommChoice> choice = PickComm(asked, layout_, shm_trouble_);
  if (!choice.ok()) return choice.status();
  choice_ = *std::move(choice);
  all_ = std::make_unique<Group>(FactsOfAll(), joined_->group);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Group>> World::MakeGroup(const std::string& name,
                                                        const std::vector<int>& members) {
  const std::string ranks = absl::StrJoin(members, ", ");
  const std::string attempt = absl::StrCat("make the group ", name, " of ranks ", ranks);
  const std::set<int> distinct(members.begin(), members.end());
  if (name.empty() || distinct.size() != members.size() || !distinct.contains(rank_) ||
      *distinct.begin() < 0 || *distinct.rbegin() >= size_) {
    return absl::InvalidArgumentError(
        absl::StrCat(attempt, " on rank ", rank_, ": a group needs a name, and different ranks of ",
                     "0 to ", size_ - 1, " with the one that makes it among them"));
  }
  // A new meeting point each time; all members have met equally often.
  const std::string meeting = absl::StrCat("group/", name, "/", absl::StrJoin(members, ","), "/");
  const std::string now = absl::StrCat(meeting, meetings_[meeting]++, "/");
  const compat::Store store = c10::make_intrusive<c10d::PrefixStore>(now, joined_->store);
  try {
    store->set(ArrivalKey(rank_), std::vector<std::uint8_t>{1});
    std::vector<std::string> arrivals;
    for (const int member : members) arrivals.push_back(ArrivalKey(member));
    store->wait(arrivals, timeout_);
    return Connect(name, members, now);
  } catch (const std::exception& error) {
    return absl::UnavailableError(
        absl::StrCat(attempt, ": ", WhoIsMissing(store, members), OneLine(error)));
  }
}

std::unique_ptr<Group> World::Connect(const std::string& name, const std::vector<int>& members,
                                      const std::string& meeting) {
  GroupFacts facts = FactsOfAll();
  facts.name = name;
  facts.members = members;
  facts.rank = static_cast<int>(std::find(members.begin(), members.end(), rank_) - members.begin());
  facts.meet = MeetAt(meeting);
  facts.calls = CallAt(meeting, facts.rank, static_cast<int>(members.size()));
  std::vector<std::string> hosts;
  for (const int member : members) hosts.push_back(hosts_[static_cast<std::size_t>(member)]);
  facts.layout = LayOutHosts(hosts, facts.rank);
  const int count = static_cast<int>(members.size());
  if (comm() == Comm::kNccl) {
    const auto store = c10::make_intrusive<c10d::PrefixStore>(meeting, joined_->store);
    auto group = JoinNcclInTime(store, facts.rank, count, timeout_, device_);
    joined_->nccl_groups.push_back(group);
    return std::make_unique<Group>(std::move(facts), std::move(group));
  }
  // A request for shared memory applies to the ranks that can use it: a member may be alone on its
  // host.
  const Comm asked = asked_ == Comm::kShm ? Comm::kAuto : asked_;
  facts.comm = PickComm(asked, facts.layout, shm_trouble_).value().comm;
  auto ranks = facts.meet("ranks", facts.rank, count);
  return std::make_unique<Group>(std::move(facts), std::move(ranks));
}

std::string World::WhereRanksAre() const {
  return recorder_ ? recorder_->Explain() : "";
}

}  // namespace muster::trainer

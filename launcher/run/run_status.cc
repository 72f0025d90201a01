#include "launcher/run/run_status.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "launcher/machine/devices.h"
#include "launcher/machine/nvml.h"
#include "rendezvous/net/find_credentials.h"

namespace muster::launcher {
namespace {

constexpr std::chrono::milliseconds kAfterStart(20);

// The GPUs that the workers may use. Where nobody has chosen, worker i uses device i, as every
// framework does. NVML, which may take seconds, is asked only if devices are named by UUID.
std::vector<RunDevice> DevicesOf(const LaunchConfig& config, const Environment& base,
                                 const Machine& machine) {
  const auto visible = base.find("CUDA_VISIBLE_DEVICES");
  std::vector<GpuDevice> gpus;
  std::vector<std::string> names;
  if (visible == base.end()) {
    const int used = std::min(machine.nvidia_devices, config.nproc_per_node);
    for (int i = 0; i < used; ++i) names.push_back(absl::StrCat(i));
  } else {
    if (absl::StrContains(visible->second, "GPU-") || absl::StrContains(visible->second, "MIG-")) {
      gpus = GpusOf(machine).gpus;
    }
    names = VisibleDevices(base, gpus);
  }
  std::vector<RunDevice> devices;
  for (const std::string& name : names) {
    const GpuDevice* const device = FindDevice(name, gpus);
    devices.push_back({name, device == nullptr ? "" : CanonicalDevice(name, gpus)});
  }
  return devices;
}

}  // namespace

RunEntry::RunEntry(boost::asio::io_context& io, const LaunchConfig& config, const Environment& own,
                   const Environment& base, const Machine& machine, const std::string& log_dir,
                   bool launched)
    : place_(RunsPlaceOf(own)), timer_(io) {
  info_.run_id = config.run_id;
  info_.pid = getpid();
  info_.script = config.program.name;
  info_.devices = DevicesOf(config, base, machine);
  info_.since = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  info_.log_dir = log_dir;
  info_.nproc = config.nproc_per_node;
  info_.launched = launched;
  if (info_.devices.empty()) {
    WriteSoon();
    return;
  }
  for (const std::string& conflict :
       DeviceConflicts(ListRuns(RunsDirs(place_)).runs, info_.devices)) {
    spdlog::warn("{}", conflict);
  }
  Write();
}

void RunEntry::Show(RunState state) {
  info_.state = state;
  WriteSoon();
}

void RunEntry::ShowRound(const rendezvous::Assignment& assignment) {
  info_.node_rank = assignment.group_rank;
  const int last = assignment.base_rank + info_.nproc - 1;
  info_.ranks = absl::StrCat(assignment.base_rank,
                             last == assignment.base_rank ? std::string() : absl::StrCat("-", last),
                             " of ", assignment.world_size);
  Show(RunState::kRunning);
}

void RunEntry::WriteSoon() {
  if (failed_ || std::exchange(writes_soon_, true)) return;
  timer_.expires_after(kAfterStart);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    writes_soon_ = false;
    Write();
  });
}

void RunEntry::Write() {
  absl::Status status;
  if (registration_ != nullptr) {
    status = registration_->Update(info_);
  } else if (auto registration = RunRegistration::Register(RunsDirs(place_), info_);
             registration.ok()) {
    registration_ = *std::move(registration);
  } else {
    status = registration.status();
  }
  if (status.ok()) return;
  failed_ = true;
  spdlog::warn("muster ps will not show this run: {}", std::string(status.message()));
  registration_.reset();
}

absl::StatusOr<std::unique_ptr<rendezvous::DaemonPages>> OpenJobPages(
    boost::asio::io_context& io, const LaunchConfig& config,
    const rendezvous::Credentials& credentials, rendezvous::Server* server,
    const rendezvous::LoopTurns& turns) {
  if (!config.http) return nullptr;
  if (server == nullptr) {
    spdlog::info("--http: this node does not host the rendezvous; the one that does shows the job");
    return nullptr;
  }
  rendezvous::Credentials shown_to = credentials;
  if (!credentials.secure() && !config.token.insecure) {
    auto own = rendezvous::FindCredentials(config.token, *config.http, rendezvous::Role::kAgent);
    if (!own.ok()) return own.status();
    shown_to = *std::move(own);
  }
  auto pages = rendezvous::DaemonPages::Open(io, *config.http, shown_to, *server, &turns);
  if (pages.ok()) {
    spdlog::info("showing the job at http://{}/",
                 rendezvous::ToString({config.http->host, (*pages)->port()}));
  }
  return pages;
}

rendezvous::HttpAnswer HealthServer::AnswerTo(const rendezvous::HttpRequest& request) const {
  const bool asks_ready = request.path == "/healthz/ready";
  if (!asks_ready && request.path != "/healthz") return {.status = 404, .body = "", .headers = {}};
  if (asks_ready && !ready_) return {.status = 503, .body = "not ready\n", .headers = {}};
  return {.body = "ok\n", .headers = {}};
}

absl::StatusOr<std::unique_ptr<HealthServer>> HealthServer::Open(
    boost::asio::io_context& io, const rendezvous::Endpoint& endpoint) {
  std::unique_ptr<HealthServer> health(new HealthServer);
  auto server = rendezvous::HttpServer::Open(
      io, endpoint, "/healthz", [health = health.get()](const rendezvous::HttpRequest& request) {
        return health->AnswerTo(request);
      });
  if (!server.ok()) return server.status();
  health->server_ = *std::move(server);
  return health;
}

}  // namespace muster::launcher

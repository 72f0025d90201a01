#include "worker/group/worker_starter.h"

#include <utility>

#include "worker/group/own_directory.h"
#include "worker/output/console.h"
#include "worker/output/output.h"
#include "worker/process/process.h"
#include "worker/process/spawn.h"
#include "worker/tree/agent_mark.h"

namespace muster::worker {

WorkerStarter::WorkerStarter(boost::asio::io_context& io, Console& console, int cgroup_fd)
    : io_(io), console_(console), cgroup_fd_(cgroup_fd), slots_(StdioSlots::Take()) {}

absl::StatusOr<std::unique_ptr<GroupWorker>> WorkerStarter::Start(const WorkerSpec& spec,
                                                                  Callbacks callbacks) {
  if (!spec.directory.empty()) {
    absl::Status made = MakeOwnDirectory(spec.directory);
    if (!made.ok()) return made;
  }
  auto out =
      Output::Open(io_, spec.stdout_spec, StreamKind::kStdout, console_, callbacks.on_log_loss);
  if (!out.ok()) return out.status();
  auto err =
      Output::Open(io_, spec.stderr_spec, StreamKind::kStderr, console_, callbacks.on_log_loss);
  if (!err.ok()) return err.status();

  SpawnRequest request;
  request.argv = spec.argv;
  request.common_env = spec.common_env;
  request.env = spec.env;
  AddMark(AgentMark(), &request.env);
  request.cpus = spec.cpus;
  if (slots_.has_value()) request.slots = &*slots_;
  request.join_fd = cgroup_fd_;
  request.stdout_fd = (*out)->child_fd();
  request.stderr_fd = (*err)->child_fd();
  absl::StatusOr<Spawned> spawned = Spawn(request);
  if (!spawned.ok()) return spawned.status();

  const pid_t pid = spawned->pid;
  (*out)->Start(pid);
  (*err)->Start(pid);
  auto process = std::make_unique<Process>(io_, *std::move(spawned), std::move(callbacks.on_exit));
  return std::make_unique<GroupWorker>(
      GroupWorker{spec, *std::move(out), *std::move(err), std::move(process)});
}

}  // namespace muster::worker

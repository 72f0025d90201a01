// The flags that start a job on every host with one command.
#include <utility>

#include "absl/strings/str_cat.h"
#include "launcher/flags/flag_table.h"
#include "launcher/flags/readers.h"
#include "launcher/hosts/host_list.h"
#include "launcher/hosts/link_command.h"

namespace muster::launcher {
namespace {

absl::StatusOr<std::string> ReadLaunchWith(absl::string_view text) {
  const auto words = ParseLaunchWith(text);
  if (!words.ok()) return words.status();
  return std::string(text);
}

absl::StatusOr<std::string> ReadExport(absl::string_view text) {
  if (!text.empty() && text.front() != '=') return std::string(text);
  return absl::InvalidArgumentError("names no variable; write NAME or NAME=VALUE");
}

Problem AddExport(absl::string_view value, RunFlags& flags) {
  auto variable = ReadExport(value);
  if (!variable.ok()) return std::string(variable.status().message());
  flags.exported.push_back(*std::move(variable));
  return std::nullopt;
}

constexpr Flag kHostFlags[] = {
    {.name = "--hosts",
     .short_name = "-H",
     .has_variable = false,
     .here_alone = true,
     .ours = true,
     .value_name = "HOST[:N],...",
     .help = "Start a node on each of these hosts, by ssh, from here: node0:8,node[1-3]:4 are four "
             "nodes with 8, 4, 4 and 4 workers. Without a number a host has --nproc-per-node's. "
             "This machine need not be one of them. The first serves the rendezvous, unless "
             "--rdzv-endpoint names a musterd.",
     .default_text = "none; this machine is a node",
     .set = Store<ParseHostList, &RunFlags::hosts>},
    {.name = "--hostfile",
     .has_variable = false,
     .here_alone = true,
     .ours = true,
     .value_name = "FILE",
     .help = "The same from a file, a host on each line: node0, node0:8 or node0 slots=8.",
     .default_text = "none",
     .set = Store<ReadText, &RunFlags::hostfile>},
    {.name = "--fanout",
     .has_variable = false,
     .here_alone = true,
     .ours = true,
     .value_name = "N",
     .help = "How many hosts one process starts by itself; these start the others.",
     .default_text = "16",
     .set = Store<ReadNumberAboveZero, &RunFlags::fanout>},
    {.name = "--launch-with",
     .has_variable = false,
     .here_alone = true,
     .ours = true,
     .value_name = "COMMAND",
     .help = "What connects to a host instead of ssh, such as 'docker exec -i {host} sh -c "
             "{command}'. {user} is there, too.",
     .default_text = "ssh",
     .set = Store<ReadLaunchWith, &RunFlags::launch_with>},
    {.name = "--ssh-persist",
     .has_variable = false,
     .here_alone = true,
     .ours = true,
     .value_name = "SECONDS",
     .help =
         "How long ssh keeps a connection to a host that nothing uses, so that the next command "
         "starts there in a fraction of the time; 0: it ends with its command. Where your ssh "
         "configuration has a ControlPath, a proxy or a forwarded agent for a host, none is kept.",
     .default_text = "60",
     .set = Store<ReadSeconds, &RunFlags::ssh_persist>},
    {.name = "--no-ship",
     .kind = Flag::Kind::kSwitch,
     .has_variable = false,
     .here_alone = true,
     .ours = true,
     .help = "Do not send this program to hosts that have no muster, or another build of it: they "
             "count as unreachable.",
     .set = Store<ReadSwitch, &RunFlags::no_ship>},
    {.name = "--export",
     .has_variable = false,
     .here_alone = true,
     .ours = true,
     .value_name = "NAME[=VALUE]",
     .help =
         "A variable that all hosts get, too; may be given several times. Those that begin with "
         "PET_, NCCL_, GLOO_, OMP_, TORCH or PYTHON go along anyway.",
     .default_text = "none",
     .set = AddExport},
};

}  // namespace

FlagGroup HostFlags() {
  return {"Hosts: one command for all of them", kHostFlags};
}

}  // namespace muster::launcher

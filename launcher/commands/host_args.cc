#include "launcher/commands/host_args.h"

#include <array>
#include <chrono>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/seconds.h"
#include "launcher/hosts/hostfile.h"
#include "launcher/hosts/link_command.h"

namespace muster::launcher {

absl::StatusOr<bool> HostArgs::Take(const std::vector<std::string>& args, std::size_t& next) {
  const absl::string_view arg = args[next];
  if (arg == "--no-ship") {
    ships_ = false;
    return true;
  }
  const std::array<std::pair<absl::string_view, std::string*>, 6> with_value = {{
      {"--hosts", &list_},
      {"-H", &list_},
      {"--hostfile", &hostfile_},
      {"--launch-with", &launch_with_},
      {"--ssh-persist", &ssh_persist_},
      {"--timeout", &timeout_},
  }};
  for (const auto& [name, value] : with_value) {
    if (arg == name) {
      if (next + 1 == args.size()) {
        return absl::InvalidArgumentError(absl::StrCat("'", arg, "' needs a value"));
      }
      *value = args[++next];
    } else if (absl::StartsWith(arg, absl::StrCat(name, "="))) {
      *value = std::string(arg.substr(name.size() + 1));
    } else {
      continue;
    }
    if (value->empty()) {
      return absl::InvalidArgumentError(absl::StrCat("'", name, "' needs a value"));
    }
    return true;
  }
  return false;
}

absl::StatusOr<HostQuery> HostArgs::Query(std::vector<std::string> command) const {
  if (!list_.empty() && !hostfile_.empty()) {
    return absl::InvalidArgumentError(
        "--hosts does not go with --hostfile: both say which hosts there are; drop one of them");
  }
  HostQuery query{
      .hosts = {}, .command = std::move(command), .launch_with = launch_with_, .ships = ships_};
  if (!timeout_.empty()) {
    const auto timeout = base::ParseSeconds(timeout_);
    if (!timeout || *timeout == std::chrono::milliseconds::zero()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--timeout=", timeout_, " is no number of seconds above 0"));
    }
    query.timeout = *timeout;
  }
  if (!ssh_persist_.empty()) {
    const auto time = base::ParseSeconds(ssh_persist_);
    if (!time) {
      return absl::InvalidArgumentError(
          absl::StrCat("--ssh-persist=", ssh_persist_, " is no number of seconds from 0"));
    }
    query.ssh_persist = *time;
  }
  if (!launch_with_.empty()) {
    if (const auto words = ParseLaunchWith(launch_with_); !words.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--launch-with=", launch_with_, " ", words.status().message()));
    }
  }
  auto hosts = hostfile_.empty() ? ParseHostList(list_) : ReadHostfile(hostfile_);
  if (!hosts.ok()) {
    return hostfile_.empty() ? absl::InvalidArgumentError(
                                   absl::StrCat("--hosts=", list_, " ", hosts.status().message()))
                             : hosts.status();
  }
  query.hosts = *std::move(hosts);
  return query;
}

const char kHostArgsHelp[] =
    R"(  -H, --hosts HOST,...  Ask these hosts, by ssh, instead of this machine: node0,node[1-3]. Each
                        answers for the user who is logged in there.
  --hostfile FILE       The same from a file, a host on each line.
  --launch-with COMMAND What connects to a host instead of ssh, with {host} and {command} in it.
  --ssh-persist SECONDS How long ssh keeps a connection that nothing uses, for the next command.
                        Default: 60.
  --timeout SECONDS     How long all of it may take. Hosts that have not told by then are named.
                        Default: 60.
  --no-ship             Do not send this program to hosts that have no muster, or another build of
                        it.
)";

}  // namespace muster::launcher

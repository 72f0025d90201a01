// The flags of commands that ask other machines: --hosts and what belongs to it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/tree/host_query.h"

namespace muster::launcher {

// Takes such flags off a command line, one after the other.
class HostArgs {
 public:
  // Whether `args[next]` is one of them, which is kept then, with its value, and `next` is the last
  // that belongs to it. An error's message is a sentence for the user.
  absl::StatusOr<bool> Take(const std::vector<std::string>& args, std::size_t& next);

  // Whether any host was named.
  bool asks() const { return !list_.empty() || !hostfile_.empty(); }

  // What the flags ask for, with `command` for each host. Reads the hostfile.
  absl::StatusOr<HostQuery> Query(std::vector<std::string> command) const;

 private:
  std::string list_;
  std::string hostfile_;
  std::string launch_with_;
  std::string ssh_persist_;
  std::string timeout_;
  bool ships_ = true;
};

// What help texts say of them.
extern const char kHostArgsHelp[];

}  // namespace muster::launcher

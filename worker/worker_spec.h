// What one worker is: the program, its environment and where its output goes. A plain value, made
// by the launcher and read-only afterwards.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace muster::worker {

class StreamLog;

// Where one output stream of a worker goes. With neither file nor console it goes to /dev/null.
struct OutputSpec {
  // A file to append to, created with mode 0600, missing directories above it with 0700; empty:
  // none. A symbolic link is not followed, and anything but a regular file or character device is
  // refused.
  std::string file;
  // Also show it on the agent's own stream of the same kind.
  bool to_console = true;
  // Put before each line on the console ("[default0]:") and in the filtered file, never in `file`.
  // ${pid} in it becomes the worker's pid and ${time} the local time at which the line ended
  // (HH:MM:SS.mmm). With a prefix, lines of different workers never mix; without one, bytes are
  // passed on immediately.
  std::string prefix;
  // Lines that contain one of `filters` are appended, with the prefix, to this file, which several
  // streams may share; it is opened like `file`. Empty: none.
  std::string filtered_file;
  std::vector<std::string> filters;
  // Keep the last kMaxTail bytes in memory for the failure report. For that the worker gets a
  // pseudo-terminal if it would have inherited a terminal, otherwise a pipe. A stream that we read
  // for another reason keeps its tail anyway.
  bool keep_tail = false;
  // Told what the stream has brought, for who wants to read it later; null: nobody is.
  std::shared_ptr<StreamLog> log{};
};

// Its standard input is the agent's own.
struct WorkerSpec {
  int rank = 0;
  int local_rank = 0;
  std::string role = "default";
  // argv[0] without a slash is looked up in the agent's PATH. Must not be empty.
  std::vector<std::string> argv;
  // The environment, "NAME=value" each, without MUSTER_AGENT_ID, which the group adds: what all the
  // workers of a node have in common, kept once for all of them (null: nothing), and the worker's
  // own. No name is in both. An existing MUSTER_AGENT_ID belongs in the worker's own.
  std::shared_ptr<const std::vector<std::string>> common_env;
  std::vector<std::string> env;
  OutputSpec stdout_spec;
  OutputSpec stderr_spec;
  // The CPUs it may run on, in any order; empty: those of the agent.
  std::vector<int> cpus;
  // A directory of its own for the files above and below; the one around it exists. It is made just
  // before the worker starts, and removed when the worker has succeeded and left nothing in it.
  // Empty: none.
  std::string directory;
  // Where the worker was told to leave its last words (TORCHELASTIC_ERROR_FILE); empty: nowhere.
  // Only looked at for the failure report.
  std::string error_file;
};

}  // namespace muster::worker

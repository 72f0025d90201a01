#include "launcher/tree/node_command.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "launcher/agent/speech.h"
#include "launcher/tree/node_process.h"

namespace muster::launcher {

bool IsDoctor(const launch::v1::Job& job) {
  return job.dialect() == "doctor";
}

std::vector<std::string> NodeCommand(const std::string& program, const launch::v1::Job& job,
                                     const launch::v1::Host& self, const std::string& endpoint) {
  if (job.question_size() > 0) {
    std::vector<std::string> argv = {program};
    argv.insert(argv.end(), job.question().begin(), job.question().end());
    return argv;
  }
  if (IsDoctor(job)) {
    std::vector<std::string> argv = {program, job.dialect(),
                                     absl::StrCat("--node=", self.index(), "@", endpoint)};
    argv.insert(argv.end(), job.flags().begin(), job.flags().end());
    if (!job.token().empty()) argv.push_back(absl::StrCat("--token-fd=", NodeProcess::kTokenFd));
    argv.push_back("--");
    argv.insert(argv.end(), job.command().begin(), job.command().end());
    return argv;
  }
  // What the user says counts more than what stands before it, and less than what stands behind it.
  std::vector<std::string> argv = {program, job.dialect(), "--prefix-lines"};
  argv.insert(argv.end(), job.flags().begin(), job.flags().end());
  if (self.workers() > 0) argv.push_back(absl::StrCat("--nproc-per-node=", self.workers()));
  argv.push_back(absl::StrCat("--nnodes=", job.min_nodes(), ":", job.max_nodes()));
  argv.push_back(absl::StrCat("--rdzv-id=", job.run_id()));
  if (job.uses_rendezvous()) {
    argv.push_back(absl::StrCat("--rdzv-endpoint=", endpoint));
    argv.push_back(absl::StrCat("--node-rank=", self.index()));
  }
  if (!job.token().empty()) argv.push_back(absl::StrCat("--token-fd=", NodeProcess::kTokenFd));
  argv.push_back("--");
  argv.insert(argv.end(), job.command().begin(), job.command().end());
  return argv;
}

std::vector<std::string> NodeEnvironment(const launch::v1::Job& job, Environment own) {
  for (const std::string& variable : job.environment()) {
    const std::size_t equals = variable.find('=');
    if (equals == std::string::npos) continue;
    own[variable.substr(0, equals)] = variable.substr(equals + 1);
  }
  // Lines of all ranks come together in one place.
  own.emplace("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "[${role_name}${rank}]:");
  own[kSpeechVariable] = absl::StrCat(NodeProcess::kSpeechFd);
  return ToBlock(own);
}

}  // namespace muster::launcher

#include "launcher/commands/commands.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/cli/readers.h"
#include "launcher/cli/command_run.h"
#include "launcher/cli/flag_table.h"
#include "launcher/remote/job_manifest.h"
#include "rendezvous/identity/token.h"

namespace muster::launcher {

struct ManifestArgs : base::CommandArgs {
  JobSpec spec;
  std::string token_file;

  // Completes the spec.
  absl::Status Complete(base::Variables);
};

JobSpec& PartOf(base::CommandArgs& args, JobSpec*) {
  return static_cast<ManifestArgs&>(args).spec;
}

namespace {

constexpr char kManifest[] = "muster manifest";
constexpr int kMostPods = 100'000;
constexpr int kLongestTime = std::numeric_limits<int>::max() / 2;

// "N" or "MIN:MAX".
Problem SetPods(absl::string_view text, ManifestArgs& args) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  int least = 0;
  int most = 0;
  const bool is_good = parts.size() <= 2 && absl::SimpleAtoi(parts.front(), &least) &&
                       absl::SimpleAtoi(parts.back(), &most) && least >= 1 && least <= most &&
                       most <= kMostPods;
  if (!is_good) return "is not a number of pods; write N or MIN:MAX";
  args.spec.min_nodes = least;
  args.spec.max_nodes = most;
  return std::nullopt;
}

// The parts of "NAME=VALUE" or "CLAIM:/PATH".
std::pair<std::string, std::string> PartsAt(absl::string_view text, char separator) {
  return absl::StrSplit(text, absl::MaxSplits(separator, 1));
}

absl::StatusOr<std::pair<std::string, std::string>> ReadVariableOfPods(absl::string_view text) {
  if (absl::StrContains(text, "=")) return PartsAt(text, '=');
  return absl::InvalidArgumentError("is not a variable; write NAME=VALUE");
}

Problem AddClaim(absl::string_view text, ManifestArgs& args) {
  const auto [claim, path] = PartsAt(text, ':');
  args.spec.claims.push_back({claim, path});
  return std::nullopt;
}

constexpr Flag kManifestFlags[] = {
    {.name = "--name",
     .value_name = "NAME",
     .help = "The name of the job and of everything that belongs to it.",
     .default_text = "muster",
     .set = Store<ReadText, &JobSpec::name>},
    {.name = "--namespace",
     .value_name = "NAME",
     .help = "Its namespace.",
     .default_text = "where kubectl says",
     .set = Store<ReadText, &JobSpec::name_space>},
    {.name = "--image",
     .value_name = "IMAGE",
     .help = "The pods' image, with muster in its PATH.",
     .set = Store<ReadText, &JobSpec::image>},
    {.name = "--nodes",
     .value_name = "N|MIN:MAX",
     .help = "Pods, each a node of the job. With MIN:MAX the job runs on as many as Kubernetes "
             "finds room for.",
     .default_text = "1",
     .set = Apply<SetPods>},
    {.name = "--gpus",
     .value_name = "N",
     .help = "GPUs for each pod, and as many workers.",
     .set = Store<base::ReadWithin<0, 1024>, &JobSpec::gpus>},
    {.name = "--gpu-resource",
     .value_name = "NAME",
     .help = "The cluster's resource name for GPUs.",
     .default_text = "nvidia.com/gpu",
     .set = Store<ReadText, &JobSpec::gpu_resource>},
    {.name = "--cpu",
     .value_name = "N",
     .help = "CPU for each pod, as request and limit.",
     .set = Store<ReadText, &JobSpec::cpu>},
    {.name = "--memory",
     .value_name = "AMOUNT",
     .help = "Memory for each pod, as request and limit; /dev/shm is part of it.",
     .set = Store<ReadText, &JobSpec::memory>},
    {.name = "--env",
     .value_name = "NAME=VALUE",
     .help = "A variable for the pods; may be repeated. Anyone who can view the job can read its "
             "value.",
     .set = base::Append<ReadVariableOfPods, &JobSpec::variables>},
    {.name = "--volume",
     .value_name = "CLAIM:/PATH",
     .help = "A PersistentVolumeClaim and its mount path in the pods; may be repeated.",
     .set = Apply<AddClaim>},
    {.name = "--secret",
     .value_name = "NAME",
     .help = "A Secret of yours, whose key `token` holds the token; none is printed then.",
     .set = Store<ReadText, &JobSpec::secret>},
    {.name = "--token-file",
     .value_name = "FILE",
     .help = "The token to print.",
     .default_text = "a fresh one, which no other job has",
     .set = Store<ReadText, &ManifestArgs::token_file>},
    {.name = "--user",
     .value_name = "UID",
     .help = "The uid, not root, that pods run as, without capabilities.",
     .default_text = "whom the image says, which must then be root",
     .set = Store<ReadNumberAboveZero, &JobSpec::user>},
    {.name = "--grace",
     .value_name = "SECONDS",
     .help = "Seconds that workers get to save after SIGTERM, when their pod is removed.",
     .default_text = "30",
     .set = Store<base::ReadWithin<0, kLongestTime>, &JobSpec::grace>},
    {.name = "--wait",
     .value_name = "SECONDS",
     .help = "Seconds that pods wait for each other.",
     .default_text = "1800",
     .set = Store<base::ReadWithin<1, kLongestTime>, &JobSpec::wait>},
    {.name = "--backoff",
     .value_name = "N",
     .help = "How many pods may fail, other than through failing workers and evictions, before the "
             "job fails.",
     .default_text = "6",
     .set = Store<ReadNumber, &JobSpec::backoff>},
    {.name = "--cluster-domain",
     .value_name = "DOMAIN",
     .help = "The cluster's DNS domain.",
     .default_text = "cluster.local",
     .set = Store<ReadText, &JobSpec::cluster_domain>},
};

// Flags of muster run that the manifest gives each pod, and what to write before -- instead.
struct OwnFlag {
  absl::string_view name;
  absl::string_view instead;
};
constexpr OwnFlag kOwnFlags[] = {
    {"--nnodes", "; give --nodes before --"},
    {"--rdzv-id", "; give --name before --"},
    {"--rdzv-endpoint", ""},
    {"--node-rank", ""},
    {"--health-port", ""},
    {"--hosts", ""},
    {"--hostfile", ""},
};

// Whether the pods can run this command line of muster run, so that it does not fail in them.
absl::Status CheckRun(const std::vector<std::string>& line) {
  RunFlags flags;
  const absl::Status status = base::ReadCommandLine(
      RunRow(Dialect::kRun), line, [](const std::string&) { return std::string(); }, flags);
  if (!status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("after --, muster run: ", status.message()));
  }
  for (const OwnFlag& own : kOwnFlags) {
    if (!flags.given.contains(own.name)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        own.name, " after --: the manifest itself decides it for each pod", own.instead));
  }
  return absl::OkStatus();
}

int PrintManifest(const ManifestArgs& args) {
  const auto manifest = JobManifest(args.spec);
  if (!manifest.ok()) return Fail(kManifest, manifest.status().message(), kExitBadInput);
  return PrintOutput(kManifest, *manifest);
}

}  // namespace

absl::Status ManifestArgs::Complete(base::Variables) {
  if (before_dashes > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("unexpected argument '", operands[0],
                     "'; what the pods run stands after --; see `muster manifest --help`"));
  }
  if (operands.empty()) {
    return absl::InvalidArgumentError(
        "there is nothing to run after --; write `muster manifest --image=IMAGE "
        "[flags] -- [flags of muster run] script [arguments]`");
  }
  if (spec.image.empty()) {
    return absl::InvalidArgumentError(
        "no image is named; give --image=IMAGE, with muster in its PATH");
  }
  if (absl::Status status = CheckRun(operands); !status.ok()) return status;
  spec.run = operands;
  if (!spec.secret.empty() && !token_file.empty()) {
    return absl::InvalidArgumentError(
        "--secret and --token-file both say where the token is; drop one of them");
  }
  if (token_file.empty()) {
    spec.token = rendezvous::Token::Random().Text();
    return absl::OkStatus();
  }
  const auto token = rendezvous::ReadTokenFile(token_file);
  if (!token.ok()) return token.status();
  spec.token = token->Text();
  return absl::OkStatus();
}

base::Command ManifestCommand() {
  return {
      .name = "manifest",
      .summary = "print a job for Kubernetes",
      .operands = "[SCRIPT] [ARGUMENT...]",
      .forms = "--image=IMAGE [flags] -- [flags of muster run] script [arguments]",
      .about = R"(Prints a job for Kubernetes, for kubectl:

  muster manifest --nodes=4 --gpus=8 --image=registry/train:7 -- train.py --lr=0.1 | kubectl create -f -

An Indexed Job with a pod for each node, a headless Service, a NetworkPolicy that lets the job's own
pods in and nobody else, and a Secret with a token. The image has muster in its PATH. A pod that is
evicted is replaced, and the new one takes its rank. Flags of muster run stand after --. Needs
Kubernetes 1.31 or newer.
)",
      .end =
          R"(A worker's failure is for muster run's --max-restarts; when they are used up, the job has failed.

Exit codes: 0 printed; 2 the command line is wrong; 4 stdout cannot be written.
)",
      .flags = base::WithHelp({kManifestFlags}),
      .run = WithArgs<ManifestArgs, PrintManifest>};
}

}  // namespace muster::launcher

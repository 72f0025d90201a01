#include "launcher/commands/manifest.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <utility>
#include <variant>

#include <CLI/CLI.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launcher/commands/answer.h"
#include "launcher/hosts/job_manifest.h"
#include "launcher/report/exit_code.h"
#include "rendezvous/identity/token_file.h"

namespace muster::launcher {
namespace {

constexpr char kUsage[] =
    "muster manifest --image=IMAGE [flags] -- [flags of muster run] script [arguments]";

constexpr char kAbout[] = R"(Prints a job for Kubernetes, for kubectl:

  muster manifest --nodes=4 --gpus=8 --image=registry/train:7 -- train.py --lr=0.1 | kubectl create -f -

An Indexed Job with a pod for each node, a headless Service, a NetworkPolicy that lets the job's own
pods in and nobody else, and a Secret with a token. The image has muster in its PATH. A pod that is
evicted is replaced, and the new one takes its rank. Flags of muster run stand after --. Needs
Kubernetes 1.31 or newer.
)";

constexpr char kManifestEnd[] =
    R"(A worker's failure is for muster run's --max-restarts; when they are used up, the job has failed.

Exit codes: 0 printed; 2 the command line is wrong; 4 stdout cannot be written.)";

constexpr int kMostPods = 100'000;
constexpr int kLongestTime = std::numeric_limits<int>::max() / 2;

int ManifestMistake(const std::string& sentence) {
  std::fprintf(stderr, "muster manifest: %s\n", sentence.c_str());
  return kExitBadInput;
}

// What is typed, beyond what JobSpec has.
struct ManifestFlags {
  JobSpec spec;
  std::string nodes = "1";
  std::vector<std::string> variables;
  std::vector<std::string> claims;
  std::string token_file;
};

void AddJobFlags(CLI::App& app, ManifestFlags& flags) {
  JobSpec& spec = flags.spec;
  app.add_option("--name", spec.name, "of the job and of all that belongs to it")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--namespace", spec.name_space, "where it lives; unless given, where kubectl says")
      ->type_name("NAME");
  app.add_option("--image", spec.image, "what the pods run, with muster in its PATH")
      ->type_name("IMAGE")
      ->required();
  app.add_option("--nodes", flags.nodes,
                 "pods, each a node of the job. With MIN:MAX the job runs on as many as Kubernetes "
                 "finds room for")
      ->type_name("N|MIN:MAX")
      ->capture_default_str();
  app.add_option("--gpus", spec.gpus, "GPUs for each pod, and as many workers")
      ->type_name("N")
      ->check(CLI::Range(0, 1024));
  app.add_option("--gpu-resource", spec.gpu_resource, "what the cluster calls GPUs")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--cpu", spec.cpu, "processors for each pod, as its request and its limit")
      ->type_name("N");
  app.add_option("--memory", spec.memory,
                 "memory for each pod, as its request and its limit; /dev/shm is part of it")
      ->type_name("AMOUNT");
  app.add_option("--env", flags.variables,
                 "a variable for the pods; repeat it for more. Who may see the job sees its value")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  app.add_option("--volume", flags.claims,
                 "a PersistentVolumeClaim and where pods see it; repeat it for more")
      ->type_name("CLAIM:/PATH")
      ->allow_extra_args(false);
}

void AddTermFlags(CLI::App& app, ManifestFlags& flags) {
  JobSpec& spec = flags.spec;
  auto* const secret =
      app.add_option("--secret", spec.secret,
                     "a Secret of yours, whose key `token` holds the token; none is printed then")
          ->type_name("NAME");
  app.add_option("--token-file", flags.token_file,
                 "the token to print; unless given, a fresh one, which no other job has")
      ->type_name("FILE")
      ->excludes(secret);
  app.add_option("--user", spec.user,
                 "the number of the user, not root, that pods run as, without capabilities; unless "
                 "given, whom the image says, which must then be root")
      ->type_name("UID")
      ->check(CLI::Range(1, std::numeric_limits<int>::max()));
  app.add_option("--grace", spec.grace,
                 "seconds that workers have to save after SIGTERM, when their pod must go")
      ->type_name("SECONDS")
      ->check(CLI::Range(0, kLongestTime))
      ->capture_default_str();
  app.add_option("--wait", spec.wait, "seconds that pods wait for one another")
      ->type_name("SECONDS")
      ->check(CLI::Range(1, kLongestTime))
      ->capture_default_str();
  app.add_option("--backoff", spec.backoff,
                 "how many pods may fail, other than by workers that fail and by evictions, before "
                 "the job has failed")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--cluster-domain", spec.cluster_domain, "what the cluster's names end with")
      ->type_name("DOMAIN")
      ->capture_default_str();
}

// "N" or "MIN:MAX".
bool ReadNodes(const std::string& text, JobSpec& spec) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  return parts.size() <= 2 && absl::SimpleAtoi(parts.front(), &spec.min_nodes) &&
         absl::SimpleAtoi(parts.back(), &spec.max_nodes) && spec.min_nodes >= 1 &&
         spec.min_nodes <= spec.max_nodes && spec.max_nodes <= kMostPods;
}

// Completes the spec from the texts; the sentence that is wrong with them, or nothing.
std::string ReadTexts(ManifestFlags& flags) {
  JobSpec& spec = flags.spec;
  if (!ReadNodes(flags.nodes, spec)) {
    return absl::StrCat("--nodes=", flags.nodes, " is not a number of pods; write N or MIN:MAX");
  }
  for (const std::string& text : flags.variables) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
    if (text.find('=') == std::string::npos) {
      return absl::StrCat("--env=", text, " is no variable; write NAME=VALUE");
    }
    spec.variables.push_back(parts);
  }
  for (const std::string& text : flags.claims) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
    spec.claims.push_back({parts.first, parts.second});
  }
  if (flags.token_file.empty()) {
    spec.token = rendezvous::Token::Random().Text();
    return "";
  }
  const auto token = rendezvous::ReadTokenFile(flags.token_file);
  if (!token.ok()) return std::string(token.status().message());
  spec.token = token->Text();
  return "";
}

}  // namespace

int ManifestCommand(const std::vector<std::string>& args) {
  const auto end = std::find(args.begin(), args.end(), "--");
  ManifestFlags flags;
  CLI::App app{kAbout, "muster manifest"};
  app.footer(kManifestEnd);
  AddJobFlags(app, flags);
  AddTermFlags(app, flags);
  try {
    app.parse(std::vector<std::string>(std::make_reverse_iterator(end), args.rend()));
  } catch (const CLI::CallForHelp&) {
    return Answer("muster manifest", app.help());
  } catch (const CLI::ParseError& error) {
    return ManifestMistake(absl::StrCat(error.what(), "; see muster manifest --help"));
  }
  if (end == args.end() || end + 1 == args.end()) {
    return ManifestMistake(
        absl::StrCat("nothing follows --, so there is nothing to run; write `", kUsage, "`"));
  }
  flags.spec.run.assign(end + 1, args.end());
  if (const std::string wrong = ReadTexts(flags); !wrong.empty()) return ManifestMistake(wrong);
  const auto manifest = JobManifest(flags.spec);
  if (!manifest.ok()) return ManifestMistake(std::string(manifest.status().message()));
  return Answer("muster manifest", *manifest);
}

}  // namespace muster::launcher

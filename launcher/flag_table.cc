#include "launcher/flag_table.h"

#include <array>

namespace muster::launcher {
namespace {

constexpr absl::string_view kNodes = "Nodes and workers";
constexpr absl::string_view kRendezvous = "Rendezvous: how the nodes find each other";
constexpr absl::string_view kProgram = "What each worker runs";
constexpr absl::string_view kFailures = "Failures and the end";
constexpr absl::string_view kOutput = "Output and logs";
constexpr absl::string_view kOther = "Other";

constexpr Flag::Kind kSwitch = Flag::Kind::kSwitch;
constexpr Flag::Kind kAsk = Flag::Kind::kAsk;

const std::array kTable = {
    Flag{.name = "--nnodes",
         .group = kNodes,
         .value_name = "N|MIN:MAX",
         .help = "How many nodes take part; with MIN:MAX the job runs on as many as come.",
         .default_text = "1",
         .set = SetNodes},
    Flag{.name = "--nproc-per-node",
         .group = kNodes,
         .value_name = "N|cpu|gpu|auto",
         .help =
             "Workers on this node: a number, one per CPU, one per GPU, or one per GPU if there "
             "are any and else per CPU. Nodes may differ.",
         .default_text = "1",
         .set = SetNproc},
    Flag{.name = "--node-rank",
         .group = kNodes,
         .value_name = "N",
         .help = "This node's place in rank order. A wish with --rdzv-endpoint, the rank itself "
                 "with --master-addr.",
         .default_text = "SLURM_NODEID or JOB_COMPLETION_INDEX if set",
         .set = SetNodeRank},
    Flag{.name = "--role",
         .group = kNodes,
         .value_name = "NAME",
         .help = "The role of this node's workers: ROLE_NAME, and the name in output prefixes.",
         .default_text = "default",
         .set = SetRole},

    Flag{.name = "--standalone",
         .kind = kSwitch,
         .group = kRendezvous,
         .help = "One node, without any network; endpoint and addresses are not looked at.",
         .default_text = "on for one node without endpoint and master port",
         .set = SetStandalone},
    Flag{.name = "--rdzv-endpoint",
         .group = kRendezvous,
         .value_name = "HOST[:PORT]",
         .help = "Where the nodes meet, the same on every node: a musterd, or else the node that "
                 "owns the address serves it.",
         .default_text = "none; port 29400",
         .set = SetEndpoint},
    Flag{.name = "--rdzv-id",
         .group = kRendezvous,
         .value_name = "ID",
         .help = "The job's name, the same on every node.",
         .default_text = "none; standalone: a fresh one",
         .set = SetRdzvId},
    Flag{.name = "--rdzv-backend",
         .group = kRendezvous,
         .value_name = "NAME",
         .help = "c10d and muster are the same here; static takes --node-rank as the rank.",
         .default_text = "muster; static with --master-addr",
         .set = SetBackend},
    Flag{.name = "--rdzv-conf",
         .group = kRendezvous,
         .value_name = "K=V,...",
         .help = "Timeouts in seconds; torchrun's keys are understood, other keys are ignored.",
         .default_text = "join_timeout=600, last_call_timeout=5, lease_timeout=5, "
                         "keep_alive_interval=1, connect_timeout=60",
         .set = SetRdzvConf},
    Flag{.name = "--master-addr",
         .group = kRendezvous,
         .value_name = "HOST",
         .help = "Without an endpoint: the address of the node with rank 0.",
         .default_text = "127.0.0.1",
         .set = SetMasterAddr},
    Flag{.name = "--master-port",
         .group = kRendezvous,
         .value_name = "PORT",
         .help = "Without an endpoint: the port of the node with rank 0.",
         .default_text = "29500; one node: a free one",
         .set = SetMasterPort},
    Flag{.name = "--local-addr",
         .group = kRendezvous,
         .value_name = "HOST",
         .help = "The address of this node that the others are told.",
         .default_text = "the one that reaches the endpoint",
         .set = SetLocalAddr},

    Flag{.name = "--module",
         .short_name = "-m",
         .kind = kSwitch,
         .group = kProgram,
         .help = "The script is the name of a Python module, as with `python -m`.",
         .set = SetModule},
    Flag{.name = "--no-python",
         .kind = kSwitch,
         .group = kProgram,
         .help = "The script is a command that is run as it is.",
         .default_text = "off; not needed for an executable that is no Python script",
         .set = SetNoPython},

    Flag{.name = "--max-restarts",
         .group = kFailures,
         .value_name = "N",
         .help = "How many worker failures the whole job survives by starting all workers again.",
         .default_text = "0",
         .set = SetMaxRestarts},
    Flag{.name = "--shutdown-timeout",
         .group = kFailures,
         .value_name = "SECONDS",
         .help = "From the signal that asks a worker to stop until it is killed.",
         .default_text = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT or 30",
         .other_variable = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT",
         .set = SetShutdownTimeout},
    Flag{.name = "--exit-code",
         .group = kFailures,
         .value_name = "torchrun|worker",
         .help = "When a worker fails: exit with 1, or with its own code (128+n for signal n).",
         .default_text = "torchrun",
         .set = SetExitCode},

    Flag{.name = "--log-dir",
         .group = kOutput,
         .value_name = "DIR",
         .help = "Where logs and error files go; /dev/null: nowhere.",
         .default_text = "a fresh muster_* directory in TMPDIR",
         .set = SetLogDir},
    Flag{.name = "--redirects",
         .short_name = "-r",
         .group = kOutput,
         .value_name = "CHOICE",
         .help = "Output that goes to a file instead of the console: 0 none, 1 stdout, 2 stderr, 3 "
                 "both, or for some local ranks only: 0:3,1:2.",
         .default_text = "0",
         .set = SetRedirects},
    Flag{.name = "--tee",
         .short_name = "-t",
         .group = kOutput,
         .value_name = "CHOICE",
         .help = "Output that goes to a file and, each line with a prefix, to the console.",
         .default_text = "0",
         .set = SetTee},
    Flag{.name = "--log-level",
         .group = kOutput,
         .value_name = "LEVEL",
         .help = "What Muster itself says on stderr: debug, info, warning or error.",
         .default_text = "LOGLEVEL or warning",
         .other_variable = "LOGLEVEL",
         .set = SetLogLevel},

    Flag{.name = "--help",
         .short_name = "-h",
         .kind = kAsk,
         .group = kOther,
         .help = "Print this text.",
         .set = SetHelp},
    Flag{.name = "--version",
         .kind = kAsk,
         .group = kOther,
         .help = "Print the version.",
         .set = SetVersion},
};

}  // namespace

absl::Span<const Flag> RunFlagTable() {
  return kTable;
}

}  // namespace muster::launcher

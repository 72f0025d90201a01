// The flags that say how the nodes find each other.
#include "absl/strings/str_cat.h"
#include "launcher/config/words.h"
#include "launcher/flags/flag_table.h"
#include "launcher/flags/rdzv_conf.h"
#include "launcher/flags/readers.h"
#include "rendezvous/net/endpoint.h"

namespace muster::launcher {
namespace {

absl::StatusOr<std::string> ReadEndpoint(absl::string_view text) {
  if (!text.empty()) {
    const auto endpoint = rendezvous::ParseEndpoints(text, rendezvous::kDefaultRendezvousPort);
    if (!endpoint.ok()) return endpoint.status();
  }
  // Whether a port may be missing depends on the backend, so it is read again when that is known.
  return std::string(text);
}

absl::StatusOr<std::string> ReadRunId(absl::string_view text) {
  // Scripts write --rdzv-id=$ID with ID empty.
  return text.empty() ? std::string() : ReadName("run id", text);
}

absl::StatusOr<std::string> ReadBackend(absl::string_view text) {
  if (text == "c10d" || text == "static" || text == "muster") return std::string(text);
  return absl::InvalidArgumentError(
      text == "etcd" || text == "etcd-v2"
          ? "is not supported, and no etcd is needed; use c10d"
          : "is not a rendezvous backend; use c10d, static or muster");
}

Problem SetRdzvConf(absl::string_view value, RunFlags& flags) {
  const auto conf = ParseRdzvConf(value);
  if (!conf.ok()) return std::string(conf.status().message());
  flags.config.timeouts = conf->timeouts;
  flags.config.is_host = conf->is_host;
  flags.config.trust_refusals = conf->trust_refusals;
  flags.join_timeout_given = conf->join_given;
  return std::nullopt;
}

Problem SetTokenFd(absl::string_view value, RunFlags& flags) {
  const auto fd = rendezvous::ReadTokenFdNumber(value);
  if (!fd.ok()) return std::string(fd.status().message());
  flags.config.token.fd = *fd;
  return std::nullopt;
}

constexpr Flag kRendezvousFlags[] = {
    {.name = "--scale-up",
     .ours = true,
     .value_name = "now|next-restart",
     .help = "When a node that joins a running job with MIN:MAX nodes gets its place: at once, by "
             "a restart that costs no budget, or at the next restart.",
     .default_text = "now",
     .set = Store<ReadWord<kScaleUps>, &LaunchConfig::scale_up>},
    {.name = "--standalone",
     .kind = Flag::Kind::kSwitch,
     .help = "Run one node, without any network, under a fresh run id. Endpoint, addresses and "
             "--rdzv-id are ignored.",
     .default_text = "on for one node without endpoint and master port",
     .set = Store<ReadSwitch, &RunFlags::standalone>},
    {.name = "--rdzv-endpoint",
     .value_name = "HOST[:PORT],...",
     .help = "Where the nodes meet, the same on every node. A musterd runs there, or else the node "
             "that owns the address serves it. Several are those of daemons that stand by for one "
             "another (musterd --state).",
     .default_text = "none; under Slurm the first node; port 29400",
     .set = Store<ReadEndpoint, &RunFlags::rdzv_endpoint>},
    {.name = "--rdzv-id",
     .value_name = "ID",
     .help = "The job's name, the same on every node. A musterd serves many jobs and needs one.",
     .default_text =
         "with an endpoint SLURM_JOB_ID if set, otherwise none; standalone: a fresh one",
     .set = Store<ReadRunId, &LaunchConfig::run_id>},
    {.name = "--rdzv-backend",
     .value_name = "NAME",
     .help = "c10d and muster are the same here; static takes --node-rank as the rank.",
     .default_text = "muster; static with --master-addr",
     .set = Store<ReadBackend, &RunFlags::rdzv_backend>},
    {.name = "--rdzv-conf",
     .value_name = "K=V,...",
     .help = "Timeouts in seconds. torchrun's keys are understood; unknown keys are ignored. "
             "trust_refusals=true takes a refused connection as proof that the rendezvous is dead: "
             "use it only where no firewall or proxy refuses connections on its behalf.",
     .default_text = "join_timeout=600, last_call_timeout=5, lease_timeout=3, "
                     "keep_alive_interval=1, connect_timeout=60, reconnect_timeout=600, "
                     "trust_refusals=false",
     .set = SetRdzvConf},
    {.name = "--token-file",
     .here_alone = true,
     .ours = true,
     .value_name = "FILE",
     .help = "The secret that all nodes of the job share and prove to each other; connections are "
             "encrypted with TLS 1.3. `muster token new` makes one. On one machine it is made and "
             "found without this.",
     .default_text = "MUSTER_TOKEN_FILE; $XDG_CONFIG_HOME/muster/token; ~/.config/muster/token",
     .set = Store<ReadText, &LaunchConfig::token, &rendezvous::TokenSource::file>},
    {.name = "--token-fd",
     .here_alone = true,
     .ours = true,
     .value_name = "FD",
     .help = "The same, read from an open file descriptor.",
     .default_text = "none",
     .set = SetTokenFd},
    {.name = "--tls-ca",
     .ours = true,
     .value_name = "FILE",
     .help = "Instead of a token: certificates of your site's own authority. Whoever has one of "
             "these authorities, in PEM, may join.",
     .default_text = "MUSTER_TLS_CA",
     .set = Store<ReadText, &LaunchConfig::token, &rendezvous::TokenSource::tls,
                  &rendezvous::CertificateFiles::ca>},
    {.name = "--tls-cert",
     .ours = true,
     .value_name = "FILE",
     .help = "This node's certificate. Where the rendezvous is, it has to be for the endpoint's "
             "name or address.",
     .default_text = "MUSTER_TLS_CERT",
     .set = Store<ReadText, &LaunchConfig::token, &rendezvous::TokenSource::tls,
                  &rendezvous::CertificateFiles::certificate>},
    {.name = "--tls-key",
     .ours = true,
     .value_name = "FILE",
     .help = "Its private key. The three files are read again when they change.",
     .default_text = "MUSTER_TLS_KEY",
     .set = Store<ReadText, &LaunchConfig::token, &rendezvous::TokenSource::tls,
                  &rendezvous::CertificateFiles::key>},
    {.name = "--insecure",
     .kind = Flag::Kind::kSwitch,
     .ours = true,
     .help = "Meet without a token and without encryption: whoever reaches the endpoint can join, "
             "read and end the job.",
     .default_text = "MUSTER_INSECURE",
     .set = Store<ReadSwitch, &LaunchConfig::token, &rendezvous::TokenSource::insecure>},
    {.name = "--master-addr",
     .value_name = "HOST",
     .help = "Without an endpoint: the address of the node with rank 0.",
     .default_text = "127.0.0.1",
     .set = Store<ReadHost, &RunFlags::master_addr>},
    {.name = "--master-port",
     .value_name = "PORT",
     .help = "Without an endpoint: the port of the node with rank 0.",
     .default_text = "29500; one node: a free one",
     .set = Store<rendezvous::ParsePort, &RunFlags::master_port>},
    {.name = "--local-addr",
     .value_name = "HOST",
     .help = "The address that other nodes use for this one.",
     .default_text = "the one from which the endpoint is reached",
     .set = Store<ReadHost, &LaunchConfig::local_addr>},
    {.name = "--worker-store",
     .ours = true,
     .value_name = "agent|worker|tunnel",
     .help = "Who serves the store of torch.distributed: the first node's agent, or the worker "
             "with rank 0 (for PyTorch builds without libuv). With tunnel the agents carry it to "
             "their workers over TLS, and it is open to no network; MASTER_ADDR is then 127.0.0.1 "
             "on every node. The same on every node.",
     .default_text = "agent; worker with TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1",
     .set = Store<ReadWord<kWorkerStores>, &RunFlags::worker_store>},
};

}  // namespace

FlagGroup RendezvousFlags() {
  return {"Rendezvous: how the nodes find each other", kRendezvousFlags};
}

}  // namespace muster::launcher

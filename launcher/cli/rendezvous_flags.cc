// The flags that say how the nodes find each other.
#include "launcher/cli/rendezvous_flags.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "base/durations.h"
#include "launcher/cli/flag_table.h"
#include "rendezvous/net/endpoint.h"
#include "rendezvous/net/find_credentials.h"

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
  flags.options.timeouts = conf->timeouts;
  flags.options.is_host = conf->is_host;
  flags.options.trust_refusals = conf->trust_refusals;
  flags.join_timeout_given = conf->join_given;
  return std::nullopt;
}

Problem SetTokenFd(absl::string_view value, RunFlags& flags) {
  const auto fd = rendezvous::ReadTokenFdNumber(value);
  if (!fd.ok()) return std::string(fd.status().message());
  flags.options.token.fd = *fd;
  return std::nullopt;
}

constexpr Flag kRendezvousFlags[] = {
    {.name = "--scale-up",
     .ours = true,
     .value_name = "now|next-restart",
     .help = "When a node that joins a running job with MIN:MAX nodes gets its place: at once, by "
             "a restart that costs no budget, or at the next restart.",
     .default_text = "now",
     .set = Store<ReadWord<kScaleUps>, &LaunchOptions::scale_up>},
    {.name = "--standalone",
     .kind = Flag::Kind::kSwitch,
     .help = "Run one node, without any network, under a fresh run id. Endpoint, addresses and "
             "--rdzv-id are ignored.",
     .default_text = "on for one node without endpoint and master port",
     .set = Store<ReadSwitch, &RunFlags::standalone>},
    {.name = "--rdzv-endpoint",
     .value_name = "HOST[:PORT],...",
     .help = "Where the nodes meet, the same on every node. A musterd runs there, or else the node "
             "that owns the address serves it. Give several for daemons that stand by for one "
             "another (musterd --state).",
     .default_text = "none; under Slurm the first node; port 29400",
     .set = Store<ReadEndpoint, &RunFlags::rdzv_endpoint>},
    {.name = "--rdzv-id",
     .value_name = "ID",
     .help = "The job's name, the same on every node. A musterd serves many jobs and needs one.",
     .default_text =
         "with an endpoint SLURM_JOB_ID if set, otherwise none; standalone: a fresh one",
     .set = Store<ReadRunId, &LaunchOptions::run_id>},
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
     .set = Apply<SetRdzvConf>},
    {.name = "--token-file",
     .local_only = true,
     .ours = true,
     .value_name = "FILE",
     .help = "The secret that all nodes of the job share and prove to each other; connections are "
             "encrypted with TLS 1.3. `muster token new` makes one. On one machine it is made and "
             "found without this.",
     .default_text = "MUSTER_TOKEN_FILE; $XDG_CONFIG_HOME/muster/token; ~/.config/muster/token",
     .set = Store<ReadText, &LaunchOptions::token, &rendezvous::TokenSource::file>},
    {.name = "--token-fd",
     .local_only = true,
     .ours = true,
     .value_name = "FD",
     .help = "The same, read from an open file descriptor.",
     .default_text = "none",
     .set = Apply<SetTokenFd>},
    {.name = "--tls-ca",
     .ours = true,
     .value_name = "FILE",
     .help = "Instead of a token: certificates of your site's own authority. Any client with a "
             "certificate from one of these authorities, in PEM, may join.",
     .default_text = "MUSTER_TLS_CA",
     .set = Store<ReadText, &LaunchOptions::token, &rendezvous::TokenSource::tls,
                  &rendezvous::CertificateFiles::ca>},
    {.name = "--tls-cert",
     .ours = true,
     .value_name = "FILE",
     .help = "This node's certificate. Where the rendezvous is, it has to be for the endpoint's "
             "name or address.",
     .default_text = "MUSTER_TLS_CERT",
     .set = Store<ReadText, &LaunchOptions::token, &rendezvous::TokenSource::tls,
                  &rendezvous::CertificateFiles::certificate>},
    {.name = "--tls-key",
     .ours = true,
     .value_name = "FILE",
     .help = "Its private key. The three files are read again when they change.",
     .default_text = "MUSTER_TLS_KEY",
     .set = Store<ReadText, &LaunchOptions::token, &rendezvous::TokenSource::tls,
                  &rendezvous::CertificateFiles::key>},
    {.name = "--insecure",
     .kind = Flag::Kind::kSwitch,
     .ours = true,
     .help = "Use neither a token nor encryption: anyone who can reach the endpoint can join, read "
             "and end the job.",
     .default_text = "MUSTER_INSECURE",
     .set = Store<ReadSwitch, &LaunchOptions::token, &rendezvous::TokenSource::insecure>},
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
     .set = Store<ReadHost, &LaunchOptions::local_addr>},
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

using std::chrono::milliseconds;
using Entries = std::map<std::string, std::string, std::less<>>;

absl::StatusOr<Entries> ReadEntries(absl::string_view text) {
  if (text.size() >= 2 && text.front() == text.back() &&
      (text.front() == '\'' || text.front() == '"')) {
    text = text.substr(1, text.size() - 2);
  }
  Entries entries;
  if (absl::StripAsciiWhitespace(text).empty()) return entries;
  for (const absl::string_view entry : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(entry, absl::MaxSplits('=', 1));
    const absl::string_view key = absl::StripAsciiWhitespace(parts.first);
    const absl::string_view value = absl::StripAsciiWhitespace(parts.second);
    if (key.empty() || value.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "has an entry '", entry, "' without key or value; write KEY=VALUE,KEY=VALUE"));
    }
    entries[std::string(key)] = std::string(value);
  }
  return entries;
}

// The value of the first of `keys` that is there; nothing when none is.
absl::StatusOr<std::optional<milliseconds>> ReadTimeout(
    const Entries& entries, std::initializer_list<absl::string_view> keys) {
  for (const absl::string_view key : keys) {
    const auto found = entries.find(key);
    if (found == entries.end()) continue;
    const auto duration = base::ParseSeconds(found->second);
    if (!duration || *duration <= milliseconds::zero()) {
      return absl::InvalidArgumentError(
          absl::StrCat("has a bad ", key, "; give it a number of seconds above 0"));
    }
    return duration;
  }
  return std::optional<milliseconds>();
}

absl::StatusOr<std::optional<int>> ReadAttempts(const Entries& entries) {
  const auto found = entries.find("keep_alive_max_attempt");
  if (found == entries.end()) return std::optional<int>();
  int attempts = 0;
  if (!absl::SimpleAtoi(found->second, &attempts) || attempts < 1 || attempts > 1000) {
    return absl::InvalidArgumentError(
        "has a bad keep_alive_max_attempt; give it a number from 1 to 1000");
  }
  return std::optional<int>(attempts);
}

absl::StatusOr<std::optional<bool>> ReadBool(const Entries& entries, absl::string_view key) {
  const auto found = entries.find(key);
  if (found == entries.end()) return std::optional<bool>();
  const std::string text = absl::AsciiStrToLower(found->second);
  for (const absl::string_view yes : {"1", "true", "t", "yes", "y"}) {
    if (text == yes) return std::optional<bool>(true);
  }
  for (const absl::string_view no : {"0", "false", "f", "no", "n"}) {
    if (text == no) return std::optional<bool>(false);
  }
  return absl::InvalidArgumentError(absl::StrCat("has a bad ", key, "; give it 1 or 0"));
}

}  // namespace

FlagGroup RendezvousFlags() {
  return {"Rendezvous: how the nodes find each other", kRendezvousFlags};
}

absl::StatusOr<RdzvConf> ParseRdzvConf(absl::string_view text) {
  const auto entries = ReadEntries(text);
  if (!entries.ok()) return entries.status();
  const auto join = ReadTimeout(*entries, {"join_timeout", "timeout"});
  if (!join.ok()) return join.status();
  const auto last_call = ReadTimeout(*entries, {"last_call_timeout"});
  if (!last_call.ok()) return last_call.status();
  const auto lease = ReadTimeout(*entries, {"lease_timeout", "lease"});
  if (!lease.ok()) return lease.status();
  const auto interval = ReadTimeout(*entries, {"keep_alive_interval"});
  if (!interval.ok()) return interval.status();
  const auto attempts = ReadAttempts(*entries);
  if (!attempts.ok()) return attempts.status();
  const auto connect = ReadTimeout(*entries, {"connect_timeout", "read_timeout"});
  if (!connect.ok()) return connect.status();

  const auto reconnect = ReadTimeout(*entries, {"reconnect_timeout"});
  if (!reconnect.ok()) return reconnect.status();

  const auto is_host = ReadBool(*entries, "is_host");
  if (!is_host.ok()) return is_host.status();
  const auto trust_refusals = ReadBool(*entries, "trust_refusals");
  if (!trust_refusals.ok()) return trust_refusals.status();
  const auto store_type = entries->find("store_type");
  if (store_type != entries->end() && store_type->second != "tcp") {
    return absl::InvalidArgumentError(
        "asks for a store_type other than tcp, the only one that Muster has; leave it out and give "
        "an endpoint HOST:PORT");
  }

  RdzvConf conf;
  conf.is_host = *is_host;
  conf.trust_refusals = trust_refusals->value_or(false);
  RendezvousTimeouts& timeouts = conf.timeouts;
  conf.join_given = join->has_value();
  timeouts.join = join->value_or(timeouts.join);
  timeouts.last_call = last_call->value_or(timeouts.last_call);
  timeouts.connect = connect->value_or(timeouts.connect);
  timeouts.reconnect = reconnect->value_or(timeouts.reconnect);
  if (lease->has_value()) {
    timeouts.lease = **lease;
  } else if (interval->has_value() || attempts->has_value()) {
    timeouts.lease = interval->value_or(std::chrono::seconds(5)) * attempts->value_or(3);
  }
  timeouts.keep_alive_interval =
      std::max(milliseconds(1),
               std::min(interval->value_or(timeouts.keep_alive_interval), timeouts.lease / 3));
  return conf;
}

}  // namespace muster::launcher

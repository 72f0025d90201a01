#include "launcher/cli/rendezvous_args.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "launcher/cli/command_run.h"
#include "launcher/cli/flag_table.h"
#include "rendezvous/core/values/phrases.h"
#include "rendezvous/net/find_credentials.h"
#include "rendezvous/net/grpc_server.h"
#include "worker/env_names.h"

namespace muster::launcher {
namespace {

using rendezvous::CertificateFiles;
using rendezvous::TokenSource;

absl::StatusOr<rendezvous::Endpoint> ReadDaemonEndpoint(absl::string_view text) {
  auto endpoint = rendezvous::ParseEndpoints(text, rendezvous::kDefaultRendezvousPort);
  if (!endpoint.ok()) return endpoint.status();
  if (endpoint->port == 0) {
    return absl::InvalidArgumentError("has port 0, which cannot be connected to");
  }
  for (const rendezvous::Endpoint& place : rendezvous::EachOf(*endpoint)) {
    const std::string why = rendezvous::WhyNobodyConnects(place.host);
    if (why.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("names ", place.host, ", which ", why,
                     "; give the name or one address of the machine where the rendezvous is"));
  }
  return endpoint;
}

absl::StatusOr<std::string> ReadJob(absl::string_view text) {
  return text.empty() ? std::string() : ReadName("run id", text);
}

constexpr Flag kRendezvousToolFlags[] = {
    {.name = "--rdzv-endpoint",
     .value_name = "HOST:PORT",
     .help = "Where the rendezvous is, as for `muster run`.",
     .default_text = "MUSTER_RDZV_ENDPOINT, which workers have, then PET_RDZV_ENDPOINT",
     .variables = "MUSTER_RDZV_ENDPOINT|PET_RDZV_ENDPOINT",
     .set = Store<ReadDaemonEndpoint, &RendezvousArgs::endpoint>},
    {.name = "--rdzv-id",
     .value_name = "JOB",
     .help = "The job.",
     .default_text = "TORCHELASTIC_RUN_ID, which workers have, then PET_RDZV_ID",
     .variables = "TORCHELASTIC_RUN_ID|PET_RDZV_ID",
     .set = Store<ReadJob, &RendezvousArgs::run_id>},
    {.name = "--token-file",
     .value_name = "FILE",
     .help = "The token that the rendezvous was started with.",
     .default_text = "MUSTER_TOKEN_FILE; $XDG_CONFIG_HOME/muster/token; ~/.config/muster/token",
     .set = Store<ReadText, &RendezvousArgs::token, &TokenSource::file>},
    {.name = "--token-fd",
     .value_name = "FD",
     .help = "The same, read from an open file descriptor.",
     .set = Store<rendezvous::ReadTokenFdNumber, &RendezvousArgs::token, &TokenSource::fd>},
    {.name = "--tls-ca",
     .value_name = "FILE",
     .help = "Instead of a token: certificates of your site's own authority. The authorities to "
             "trust, in PEM.",
     .default_text = "MUSTER_TLS_CA",
     .set = Store<ReadText, &RendezvousArgs::token, &TokenSource::tls, &CertificateFiles::ca>},
    {.name = "--tls-cert",
     .value_name = "FILE",
     .help = "The certificate to show.",
     .default_text = "MUSTER_TLS_CERT",
     .set = Store<ReadText, &RendezvousArgs::token, &TokenSource::tls,
                  &CertificateFiles::certificate>},
    {.name = "--tls-key",
     .value_name = "FILE",
     .help = "Its private key.",
     .default_text = "MUSTER_TLS_KEY",
     .set = Store<ReadText, &RendezvousArgs::token, &TokenSource::tls, &CertificateFiles::key>},
    {.name = "--insecure",
     .kind = Flag::Kind::kSwitch,
     .help = "The rendezvous was started with --insecure.",
     .default_text = "MUSTER_INSECURE",
     .set = Store<ReadSwitch, &RendezvousArgs::token, &TokenSource::insecure>},
};

}  // namespace

absl::Span<const base::Flag> RendezvousToolFlags() {
  return kRendezvousToolFlags;
}

absl::Status RendezvousArgs::Complete(base::Variables variables) {
  if (endpoint.host.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no rendezvous is named; give --rdzv-endpoint=HOST:PORT, as for `muster run` "
                     "(a worker of a job that has one finds it in ",
                     worker::env::kRendezvousEndpoint, ")"));
  }
  if (verb.empty() && !operands.empty()) {
    const std::string& job = operands.front();
    if (given.contains("--rdzv-id") && run_id != job) {
      return absl::InvalidArgumentError(
          absl::StrCat("two jobs are named, '", job, "' and --rdzv-id=", run_id, "; name one"));
    }
    if (absl::Status named = rendezvous::CheckName("run id", job); !named.ok()) return named;
    run_id = job;
  }
  auto completed = rendezvous::CompleteTokenSource(
      std::move(token), [&](const char* variable) { return variables(variable); });
  if (!completed.ok()) return completed.status();
  token = *std::move(completed);
  return absl::OkStatus();
}

absl::StatusOr<rendezvous::DaemonOptions> DaemonOf(const rendezvous::Endpoint& endpoint,
                                                   const rendezvous::TokenSource& source) {
  auto credentials = rendezvous::FindCredentials(source, endpoint, rendezvous::Role::kTool);
  if (!credentials.ok()) return credentials.status();
  if (absl::Status enough = rendezvous::CheckThreads(); !enough.ok()) return enough;
  return rendezvous::DaemonOptions{.endpoint = endpoint, .credentials = *std::move(credentials)};
}

int ExitCodeOf(const absl::Status& no_daemon) {
  // That of too few threads: nothing that the user has typed is wrong.
  return absl::IsResourceExhausted(no_daemon) ? kExitRendezvousFailed : kExitBadInput;
}

}  // namespace muster::launcher

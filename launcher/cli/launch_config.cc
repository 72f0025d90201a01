#include "launcher/cli/launch_config.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "worker/env_names.h"

namespace muster::launcher {
namespace {

std::optional<Streams> ReadStreams(absl::string_view text) {
  if (text.size() != 1 || text[0] < '0' || text[0] > '3') return std::nullopt;
  return static_cast<Streams>(text[0] - '0');
}

std::optional<int> ReadLocalRank(absl::string_view text) {
  int rank = 0;
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return absl::ascii_isdigit(c);
  });
  if (!digits || !absl::SimpleAtoi(text, &rank)) return std::nullopt;
  return rank;
}

bool IsNameChar(char c, bool first) {
  const auto byte = static_cast<unsigned char>(c);
  return c == '_' || (first ? absl::ascii_isalpha(byte) : absl::ascii_isalnum(byte));
}

// The identifier at the start of `text`; empty when there is none.
absl::string_view NameAt(absl::string_view text) {
  std::size_t length = 0;
  while (length < text.size() && IsNameChar(text[length], length == 0)) ++length;
  return text.substr(0, length);
}

// A worker's own `muster kv` goes where its agent goes. Only the name of a file is handed on.
void LeaveTokenTo(const rendezvous::TokenSource& token, Environment& base) {
  if (!token.insecure && token.file.empty() && token.tls.empty()) return;
  const auto set_file = [&base](const char* variable, const std::string& file) {
    base.erase(variable);
    std::error_code ignored;
    if (!file.empty()) base[variable] = std::filesystem::absolute(file, ignored);
  };
  set_file(rendezvous::kTokenFileVariable, token.file);
  set_file(rendezvous::kTlsCaVariable, token.tls.ca);
  set_file(rendezvous::kTlsCertVariable, token.tls.certificate);
  set_file(rendezvous::kTlsKeyVariable, token.tls.key);
  base.erase(rendezvous::kInsecureVariable);
  if (token.insecure) base[rendezvous::kInsecureVariable] = "1";
}

}  // namespace

absl::StatusOr<Redirects> ParseRedirects(absl::string_view text) {
  const absl::Status bad = absl::InvalidArgumentError(
      "is not a stream choice; write 0 (none), 1 (stdout), 2 (stderr) or 3 (both), or local ranks "
      "with theirs such as 0:3,1:2");
  Redirects redirects;
  if (const auto all = ReadStreams(text)) {
    redirects.all = *all;
    return redirects;
  }
  for (const absl::string_view entry : absl::StrSplit(text, ',')) {
    const std::size_t colon = entry.find(':');
    if (colon == absl::string_view::npos) return bad;
    const auto rank = ReadLocalRank(entry.substr(0, colon));
    const auto streams = ReadStreams(entry.substr(colon + 1));
    if (!rank || !streams) return bad;
    redirects.by_local_rank[*rank] = *streams;
  }
  return redirects;
}

std::string ExpandTemplate(absl::string_view text,
                           const std::map<std::string, std::string>& values) {
  std::string out;
  while (!text.empty()) {
    const std::size_t dollar = text.find('$');
    absl::StrAppend(&out, text.substr(0, dollar));
    if (dollar == absl::string_view::npos) break;
    text.remove_prefix(dollar + 1);
    if (!text.empty() && text.front() == '$') {
      out += '$';
      text.remove_prefix(1);
      continue;
    }
    const bool braced = !text.empty() && text.front() == '{';
    const absl::string_view name = NameAt(text.substr(braced ? 1 : 0));
    const bool closed = !braced || (name.size() + 1 < text.size() && text[name.size() + 1] == '}');
    if (name.empty() || !closed) {
      out += '$';
      continue;
    }
    const auto found = values.find(std::string(name));
    absl::StrAppend(&out, found != values.end() ? found->second : absl::StrCat("${", name, "}"));
    text.remove_prefix(name.size() + (braced ? 2 : 0));
  }
  return out;
}

namespace env = worker::env;

Environment BaseEnvironment(const LaunchConfig& config, const Environment& own) {
  Environment base = own;
  if (!config.devices.empty()) base[env::kCudaVisibleDevices] = absl::StrJoin(config.devices, ",");
  if (const auto omp = DefaultOmpThreads(config.nproc_per_node, own)) {
    base[env::kOmpNumThreads] = omp->threads;
  }
  LeaveTokenTo(config.token, base);
  // torchrun's value: when an operation of NCCL has failed, abort the communicators and end the
  // process. Before 2.1 LibTorch by itself did neither, and a worker whose peer was gone hung;
  // since then it ends the process without aborting (3), which a worker may set for itself.
  base.emplace(env::kNcclAsyncErrorHandling, "1");
  return base;
}

std::optional<OmpDefault> DefaultOmpThreads(int nproc, const Environment& environment) {
  if (nproc <= 1 || environment.count("OMP_NUM_THREADS") > 0) return std::nullopt;
  return OmpDefault{.threads = "1",
                    .note = "OMP_NUM_THREADS=1 for each worker; set it to choose otherwise"};
}

}  // namespace muster::launcher

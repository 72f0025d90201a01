#include "launcher/commands/token.h"

#include <unistd.h>

#include <cstdio>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/seconds.h"
#include "launcher/commands/answer.h"
#include "launcher/environment.h"
#include "launcher/report/exit_code.h"
#include "rendezvous/identity/token_file.h"
#include "rendezvous/net/token_source.h"

namespace muster::launcher {
namespace {

constexpr char kTokenCommandHelp[] =
    R"(Usage: muster token new [FILE]
       muster token show [FILE]
       muster token rotate [--former-for=SECONDS] [FILE]
       muster token metrics [FILE]

A token is the secret that agents, daemons and tools prove to each other. Whoever has it can join,
read and end the jobs that were started with it; nobody else can do more than connect. On one
machine, and where nodes share a home directory on a network, it is made by itself at its first
use. Elsewhere make one, and copy its file to every node.

  new      Make 256 random bits and write them to FILE, which only you can read. A file that is
           there already is left as it is.
  show     Print the token in FILE, for a secret store.
  rotate   Replace the token in FILE by a new one. Daemons and agents read the file again by
           themselves at their next connection; the former token is taken for a day more, or for
           SECONDS, so that nodes with a copy of their own can be given the new file meanwhile.
           Running jobs do not notice.
  metrics  Print another token, which follows from the one in FILE: whoever has it can look at jobs
           (`muster status`) and can neither join nor end them, nor read what they store.

FILE is MUSTER_TOKEN_FILE unless it is given, else $XDG_CONFIG_HOME/muster/token, else
~/.config/muster/token: where `muster run`, musterd, `muster status` and `muster kv` look without
--token-file.

Exit codes: 0 done; 2 the command line is wrong, or the file cannot be made or read; 4 stdout cannot
be written.
)";

constexpr absl::Duration kFormerForADay = absl::Hours(24);

int Fail(const std::string& sentence) {
  std::fprintf(stderr, "muster token: %s\n", sentence.c_str());
  return kExitBadInput;
}

// Where commands look for the token; empty: nowhere.
std::string UsualFile(const Environment& environment) {
  const auto source = rendezvous::CompleteTokenSource(
      {}, [&](const char* variable) { return GetOr(environment, variable, ""); });
  if (!source.ok()) return "";
  return source->file.empty() ? source->own_file : source->file;
}

int New(const std::string& file) {
  const absl::Status made = rendezvous::WriteTokenFile(file, rendezvous::Token::Random());
  if (!made.ok()) return Fail(std::string(made.message()));
  return Answer("muster token", absl::StrCat(file, "\n"));
}

int Rotate(const std::string& file, absl::Duration former_for) {
  const absl::Time until = absl::Now() + former_for;
  const absl::Status rotated = rendezvous::RotateTokenFile(file, until);
  if (!rotated.ok()) return Fail(std::string(rotated.message()));
  return Answer(
      "muster token",
      absl::StrCat(file, " has a new token; the former one is taken until ",
                   absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", until, absl::UTCTimeZone()), "\n"));
}

int Metrics(const std::string& file) {
  const absl::StatusOr<rendezvous::Token> token = rendezvous::ReadTokenFile(file);
  if (!token.ok()) return Fail(std::string(token.status().message()));
  return Answer("muster token", token->ForMetrics().Text());
}

int Show(const std::string& file) {
  const absl::StatusOr<rendezvous::Token> token = rendezvous::ReadTokenFile(file);
  if (!token.ok()) return Fail(std::string(token.status().message()));
  return Answer("muster token", token->Text());
}

}  // namespace

int TokenCommand(const std::vector<std::string>& args) {
  constexpr char kFormerFor[] = "--former-for=";
  std::vector<std::string> words;
  std::optional<absl::Duration> former_for;
  for (const std::string& arg : args) {
    if (arg == "--help" || arg == "-h") return Answer("muster token", kTokenCommandHelp);
    if (!arg.starts_with(kFormerFor)) {
      words.push_back(arg);
      continue;
    }
    const auto seconds = base::ParseSeconds(arg.substr(sizeof(kFormerFor) - 1));
    if (!seconds) return Fail(absl::StrCat(arg, " is not a number of seconds, such as 3600"));
    former_for = absl::FromChrono(*seconds);
  }
  const std::string verb = words.empty() ? "" : words[0];
  const bool known = verb == "new" || verb == "show" || verb == "rotate" || verb == "metrics";
  if (!known || words.size() > 2 || (former_for && verb != "rotate") ||
      (words.size() == 2 && (words[1].empty() || words[1].starts_with('-')))) {
    return Fail(
        "write `muster token` and new, show, rotate or metrics, and a FILE if you like; see "
        "`muster token --help`");
  }
  const std::string file = words.size() == 2 ? words[1] : UsualFile(ReadEnvironment(environ));
  if (file.empty()) {
    return Fail(
        "with neither XDG_CONFIG_HOME nor HOME there is no usual place for a token; name a "
        "file");
  }
  if (verb == "new") return New(file);
  if (verb == "metrics") return Metrics(file);
  if (verb == "show") return Show(file);
  return Rotate(file, former_for.value_or(kFormerForADay));
}

}  // namespace muster::launcher

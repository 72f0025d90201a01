#include "launcher/commands/token.h"

#include <unistd.h>

#include <cstdio>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
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

A token is the secret that agents, daemons and tools prove to each other. Whoever has it can join,
read and end the jobs that were started with it; nobody else can do more than connect. On one
machine, and where nodes share a home directory on a network, it is made by itself at its first
use. Elsewhere make one, and copy its file to every node.

  new   Make 256 random bits and write them to FILE, which only you can read. A file that is there
        already is left as it is.
  show  Print the token in FILE, for a secret store.

FILE is MUSTER_TOKEN_FILE unless it is given, else $XDG_CONFIG_HOME/muster/token, else
~/.config/muster/token: where `muster run`, musterd, `muster status` and `muster kv` look without
--token-file.

Exit codes: 0 done; 2 the command line is wrong, or the file cannot be made or read; 4 stdout cannot
be written.
)";

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

int Show(const std::string& file) {
  const absl::StatusOr<rendezvous::Token> token = rendezvous::ReadTokenFile(file);
  if (!token.ok()) return Fail(std::string(token.status().message()));
  return Answer("muster token", token->Text());
}

}  // namespace

int TokenCommand(const std::vector<std::string>& args) {
  for (const std::string& arg : args) {
    if (arg == "--help" || arg == "-h") return Answer("muster token", kTokenCommandHelp);
  }
  const std::string verb = args.empty() ? "" : args[0];
  if ((verb != "new" && verb != "show") || args.size() > 2 ||
      (args.size() == 2 && (args[1].empty() || args[1].starts_with('-')))) {
    return Fail(
        "write `muster token new [FILE]` or `muster token show [FILE]`; see `muster token "
        "--help`");
  }
  const std::string file = args.size() == 2 ? args[1] : UsualFile(ReadEnvironment(environ));
  if (file.empty()) {
    return Fail(
        "with neither XDG_CONFIG_HOME nor HOME there is no usual place for a token; name a "
        "file");
  }
  return verb == "new" ? New(file) : Show(file);
}

}  // namespace muster::launcher

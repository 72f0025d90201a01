#include "launcher/commands/commands.h"

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/cli/readers.h"
#include "launcher/cli/command_run.h"
#include "launcher/machine/environment.h"
#include "rendezvous/identity/token.h"
#include "rendezvous/net/find_credentials.h"

namespace muster::launcher {
namespace {

constexpr char kToken[] = "muster token";

struct TokenArgs : base::CommandArgs {
  std::chrono::milliseconds old_token_ttl = std::chrono::hours(24);
};

constexpr base::Flag kTokenFlags[] = {
    {.name = "--old-token-ttl",
     .verbs = "rotate",
     .value_name = "SECONDS",
     .help = "How long the former token is still taken, so that nodes with a copy of their own can "
             "be given the new file meanwhile. 0: no former token is taken any more.",
     .default_text = "86400, a day",
     .set = base::Store<base::ReadSeconds, &TokenArgs::old_token_ttl>},
};

constexpr base::Verb kTokenVerbs[] = {
    {"new", "[FILE]",
     "Make 256 random bits and write them to FILE, which only you can read. A file that is there "
     "already is left as it is."},
    {"show", "[FILE]", "Print the token in FILE, for a secret store."},
    {"rotate", "[FILE]",
     "Replace the token in FILE by a new one. Daemons and agents read the file again by "
     "themselves at their next connection, and running jobs do not notice. Tokens that were "
     "replaced earlier keep the time that they were given."},
    {"metrics", "[FILE]",
     "Print another token, which follows from the one in FILE: whoever has it can look at jobs "
     "(`muster status`) and can neither join nor end them, nor read what they store."},
};

// Where commands look for the token; empty: nowhere.
std::string UsualFile(const Environment& environment) {
  const auto source = rendezvous::CompleteTokenSource(
      {}, [&](const char* variable) { return GetOr(environment, variable, ""); });
  if (!source.ok()) return "";
  return source->file.empty() ? source->own_file : source->file;
}

int FailToken(absl::string_view why) {
  return Fail(kToken, why, kExitBadInput);
}

int New(const std::string& file) {
  const absl::Status made = rendezvous::WriteTokenFile(file, rendezvous::Token::Random());
  if (!made.ok()) return FailToken(made.message());
  return PrintOutput(kToken, absl::StrCat(file, "\n"));
}

std::string FormatUtc(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
}

int Rotate(const std::string& file, absl::Duration old_token_ttl) {
  const auto rotated = rendezvous::RotateTokenFile(file, absl::Now() + old_token_ttl);
  if (!rotated.ok()) return FailToken(rotated.status().message());
  std::string said = absl::StrCat(file, " has a new token; ");
  if (rotated->former.empty()) {
    absl::StrAppend(&said, "old tokens are no longer accepted\n");
    return PrintOutput(kToken, said);
  }
  absl::StrAppend(&said, "the old one is accepted until ", FormatUtc(rotated->former[0].until),
                  "\n");
  for (std::size_t i = 1; i < rotated->former.size(); ++i) {
    absl::StrAppend(&said, "an older one is accepted until ", FormatUtc(rotated->former[i].until),
                    "\n");
  }
  return PrintOutput(kToken, said);
}

int Token(const TokenArgs& args) {
  const bool is_named = !args.operands.empty();
  const std::string file = is_named ? args.operands[0] : UsualFile(ReadEnvironment(environ));
  if (file.empty()) {
    return FailToken(is_named ? "the name of the file is empty; was a variable not set?"
                              : "with neither XDG_CONFIG_HOME nor HOME set there is no default "
                                "place for a token; name a file");
  }
  if (args.verb == "new") return New(file);
  if (args.verb == "rotate") return Rotate(file, absl::FromChrono(args.old_token_ttl));
  const absl::StatusOr<rendezvous::Token> token = rendezvous::ReadTokenFile(file);
  if (!token.ok()) return FailToken(token.status().message());
  return PrintOutput(kToken, args.verb == "show" ? token->Text() : token->ForMetrics().Text());
}

}  // namespace

base::Command TokenCommand() {
  return {
      .name = "token",
      .summary = "make the secret that the nodes of jobs prove to each other",
      .operands = "[FILE]",
      .about =
          R"(A token is the secret that agents, daemons and tools prove to each other. Whoever has it can join,
read and end the jobs that were started with it; nobody else can do more than connect. On one
machine, and where nodes share a home directory on a network, it is made by itself at its first
use. Elsewhere make one, and copy its file to every node.

FILE is MUSTER_TOKEN_FILE unless it is given, else $XDG_CONFIG_HOME/muster/token, else
~/.config/muster/token: where `muster run`, musterd, `muster status` and `muster kv` look without
--token-file.
)",
      .end =
          R"(Exit codes: 0 done; 2 the command line is wrong, or the file cannot be made or read; 4 stdout cannot
be written.
)",
      .verbs = kTokenVerbs,
      .flags = base::WithHelp({kTokenFlags}),
      .run = WithArgs<TokenArgs, Token>};
}

}  // namespace muster::launcher

#include "launcher/commands/kv_call.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "launcher/commands/rendezvous_args.h"

namespace muster::launcher {
namespace {

using Verb = KvCall::Verb;

constexpr std::size_t kMany = std::numeric_limits<std::size_t>::max();

struct VerbRow {
  const char* name;
  Verb verb;
  const char* operands;
  std::size_t min;
  std::size_t max;
  bool waits = false;
};

constexpr VerbRow kVerbs[] = {
    {"get", Verb::kGet, "KEY", 1, 1, true},
    {"set", Verb::kSet, "KEY [VALUE]", 1, 2},
    {"add", Verb::kAdd, "KEY [NUMBER]", 1, 2},
    {"append", Verb::kAppend, "KEY [VALUE]", 1, 2},
    {"compare-set", Verb::kCompareSet, "KEY EXPECTED [VALUE]", 2, 3},
    {"delete", Verb::kDelete, "KEY", 1, 1},
    {"check", Verb::kCheck, "KEY...", 1, kMany},
    {"wait", Verb::kWait, "KEY...", 1, kMany, true},
    {"count", Verb::kCount, "", 0, 0},
    {"barrier", Verb::kBarrier, "NAME COUNT", 2, 2, true},
};

absl::Status KvMistake(const std::string& sentence) {
  return absl::InvalidArgumentError(absl::StrCat(sentence, "; see `muster kv --help`"));
}

// The last operand of `call` as its number.
absl::Status ReadNumber(const std::string& text, std::int64_t min, KvCall& call) {
  if (absl::SimpleAtoi(text, &call.number) && call.number >= min) return absl::OkStatus();
  return KvMistake(absl::StrCat("'", text, "' is not a whole number",
                                min > 0 ? absl::StrCat(" of at least ", min) : ""));
}

// Puts each operand into its place; there are as many as the row allows.
absl::Status ReadOperands(std::vector<std::string> operands, KvCall& call) {
  switch (call.verb) {
    case Verb::kHelp:
    case Verb::kCount:
      break;
    case Verb::kGet:
    case Verb::kDelete:
    case Verb::kCheck:
    case Verb::kWait:
      call.keys = std::move(operands);
      break;
    case Verb::kSet:
    case Verb::kAppend:
      call.keys = {operands[0]};
      if (operands.size() > 1) call.value = operands[1];
      break;
    case Verb::kCompareSet:
      call.keys = {operands[0]};
      call.expected = operands[1];
      if (operands.size() > 2) call.value = operands[2];
      break;
    case Verb::kAdd:
      call.keys = {operands[0]};
      if (operands.size() > 1) {
        return ReadNumber(operands[1], std::numeric_limits<std::int64_t>::min(), call);
      }
      break;
    case Verb::kBarrier:
      call.keys = {operands[0]};
      return ReadNumber(operands[1], 1, call);
  }
  return absl::OkStatus();
}

constexpr char kKvHelpBegin[] =
    R"(Usage: muster kv COMMAND [FLAGS] [ARGUMENTS]

The key-value store that a job has at its rendezvous, for scripts that coordinate its nodes. Its
keys live as long as the job does, through restarts: put $MUSTER_ROUND into those that belong to one
round.

  get KEY                    Print the value, byte for byte. With --timeout, wait for the key first.
  set KEY [VALUE]            Write a value. Without VALUE, here and below, it is read from stdin.
  add KEY [NUMBER]           Add NUMBER (default: 1) to a number and print the sum. A new key is 0.
  append KEY [VALUE]         Write to the end of a value. A new key counts as empty.
  compare-set KEY EXPECTED [VALUE]
                             Write a value if EXPECTED is there, and print what is there then.
                             An empty EXPECTED also stands for a key that does not exist.
  delete KEY                 Remove a key.
  check KEY...               Test whether all of the keys exist.
  wait KEY...                Wait until each of the keys has been set.
  count                      Print the number of keys.
  barrier NAME COUNT         Wait until COUNT callers wait here at once; then NAME can be used
                             again. All give the same COUNT. Who gives up or dies no longer counts;
                             a host that lost its power or network counts for 25 s more.
                             NAME is not a key.

  --rdzv-endpoint HOST:PORT  Where the rendezvous is, as for `muster run`. Default:
                             MUSTER_RDZV_ENDPOINT, which workers have, then PET_RDZV_ENDPOINT.
  --rdzv-id JOB              The job. Default: TORCHELASTIC_RUN_ID, which workers have, then
                             PET_RDZV_ID.
)";
constexpr char kKvHelpEnd[] =
    R"(  --timeout SECONDS          How long get, wait and barrier wait. Default: get not at all, the
                             others as long as the job lives.
  -h, --help                 Print this text.
  --                         End of the flags: muster kv set key -- --value

Exit codes:
  0  done
  1  the answer is no: no such key (get, delete, check), not in time (get, wait, barrier), another
     value is there (compare-set)
  2  the command line is wrong
  3  no rendezvous answers, it has no such job or refuses, or the job ended meanwhile; when the
     connection broke it is not known whether a write was done
  4  stdout cannot be written
)";

}  // namespace

std::string KvHelp() {
  return absl::StrCat(kKvHelpBegin, kTokenHelp, kKvHelpEnd);
}

absl::StatusOr<KvCall> ParseKvCall(const std::vector<std::string>& args,
                                   const Environment& environment) {
  absl::StatusOr<RendezvousArgs> parsed = ParseRendezvousArgs(args, {.timeout = true}, environment);
  if (!parsed.ok()) return parsed.status();
  KvCall call;
  if (parsed->help) return call;
  if (parsed->operands.empty()) return KvMistake("no command is given");

  const std::string name = parsed->operands.front();
  const auto row = std::find_if(std::begin(kVerbs), std::end(kVerbs),
                                [&name](const VerbRow& verb) { return verb.name == name; });
  if (row == std::end(kVerbs)) return KvMistake(absl::StrCat("unknown command '", name, "'"));
  std::vector<std::string> operands(parsed->operands.begin() + 1, parsed->operands.end());
  if (operands.size() < row->min || operands.size() > row->max) {
    return KvMistake(
        absl::StrCat("write `muster kv ", name, row->max == 0 ? "" : " ", row->operands, "`"));
  }
  if (parsed->timeout && !row->waits) {
    return KvMistake(absl::StrCat("`", name, "` does not wait and takes no --timeout"));
  }
  if (parsed->run_id.empty()) {
    return absl::InvalidArgumentError(
        "no job is named; give --rdzv-id=JOB, as for `muster run` (a worker finds its own in "
        "TORCHELASTIC_RUN_ID)");
  }
  call.verb = row->verb;
  call.endpoint = parsed->endpoint;
  call.token = parsed->token;
  call.run_id = parsed->run_id;
  call.timeout = parsed->timeout;
  if (absl::Status status = ReadOperands(std::move(operands), call); !status.ok()) return status;
  return call;
}

}  // namespace muster::launcher

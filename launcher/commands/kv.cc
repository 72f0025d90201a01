#include "launcher/commands/kv.h"

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <limits>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "base/cli/readers.h"
#include "base/failure.h"
#include "base/text.h"
#include "launcher/cli/command_run.h"
#include "launcher/commands/commands.h"
#include "rendezvous/client/store_client.h"

namespace muster::launcher {
namespace {

using rendezvous::StoreClient;

constexpr char kKv[] = "muster kv";

// The answer is no: not in time, no such key, another value.
int SayNo(absl::string_view sentence) {
  return Fail(kKv, sentence, kExitNo);
}

int FailKv(const absl::Status& status) {
  return Fail(kKv, status.message(), kExitRendezvousFailed);
}

int PrintAnswer(const std::string& text) {
  return PrintOutput(kKv, text);
}

std::string Shown(const std::vector<std::string>& keys) {
  std::vector<std::string> shown;
  for (const std::string& key : keys) {
    shown.push_back(absl::StrCat("'", absl::Utf8SafeCHexEscape(key), "'"));
  }
  return base::ShortList(shown);
}

// All that comes, as it is.
absl::StatusOr<std::string> ReadStdin() {
  std::string text;
  char part[1 << 16];
  while (true) {
    const ssize_t size = read(STDIN_FILENO, part, sizeof part);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) {
      return base::SystemFailure(absl::StatusCode::kUnavailable, "read stdin");
    }
    if (size == 0) return text;
    text.append(part, static_cast<std::size_t>(size));
    if (text.size() > rendezvous::kMaxStoredValueBytes) {
      return absl::ResourceExhaustedError("stdin holds more than 1 MiB, the limit for a value");
    }
  }
}

int Get(StoreClient& store, const KvArgs& args) {
  const std::string& key = args.operands.front();
  if (args.timeout) {
    const absl::StatusOr<std::string> value = store.GetWhenThere(key, args.timeout);
    if (absl::IsDeadlineExceeded(value.status())) {
      return SayNo(absl::StrCat("key ", Shown(args.operands), " was not set within ",
                                base::Seconds(*args.timeout)));
    }
    return value.ok() ? PrintAnswer(*value) : FailKv(value.status());
  }
  const absl::StatusOr<std::optional<std::string>> value = store.Get(key);
  if (!value.ok()) return FailKv(value.status());
  if (!value->has_value()) return SayNo(absl::StrCat("no such key: ", Shown(args.operands)));
  return PrintAnswer(**value);
}

int Write(StoreClient& store, const KvArgs& args) {
  const absl::StatusOr<std::string> value =
      args.value ? absl::StatusOr<std::string>(*args.value) : ReadStdin();
  if (!value.ok()) return FailKv(value.status());
  const std::string& key = args.operands.front();
  if (args.verb == "compare-set") {
    const auto outcome = store.CompareSet(key, args.expected, *value);
    if (!outcome.ok()) return FailKv(outcome.status());
    if (!outcome->value) return SayNo(absl::StrCat("no such key: ", Shown(args.operands)));
    const int printed = PrintAnswer(*outcome->value);
    return printed == kExitSuccess && !outcome->stored ? kExitNo : printed;
  }
  const absl::Status status =
      args.verb == "set" ? store.Set(key, *value) : store.Append(key, *value);
  return status.ok() ? kExitSuccess : FailKv(status);
}

int Add(StoreClient& store, const KvArgs& args) {
  const absl::StatusOr<std::int64_t> sum = store.Add(args.operands.front(), args.number);
  return sum.ok() ? PrintAnswer(absl::StrCat(*sum, "\n")) : FailKv(sum.status());
}

int Delete(StoreClient& store, const KvArgs& args) {
  const absl::StatusOr<bool> existed = store.Delete(args.operands.front());
  if (!existed.ok()) return FailKv(existed.status());
  return *existed ? kExitSuccess : SayNo(absl::StrCat("no such key: ", Shown(args.operands)));
}

// Says nothing, as test(1) does.
int Check(StoreClient& store, const KvArgs& args) {
  const absl::StatusOr<bool> all = store.Check(args.operands);
  if (!all.ok()) return FailKv(all.status());
  return *all ? kExitSuccess : kExitNo;
}

int Wait(StoreClient& store, const KvArgs& args) {
  const absl::Status status = store.Wait(args.operands, args.timeout);
  if (absl::IsDeadlineExceeded(status)) {
    return SayNo(
        absl::StrCat(args.operands.size() == 1 ? "key " : "not all of ", Shown(args.operands),
                     args.operands.size() == 1 ? " was not set within " : " were set within ",
                     base::Seconds(*args.timeout)));
  }
  return status.ok() ? kExitSuccess : FailKv(status);
}

int Count(StoreClient& store, const KvArgs&) {
  const absl::StatusOr<std::uint64_t> count = store.NumKeys();
  return count.ok() ? PrintAnswer(absl::StrCat(*count, "\n")) : FailKv(count.status());
}

int Barrier(StoreClient& store, const KvArgs& args) {
  const absl::Status status =
      store.Barrier(args.operands.front(), static_cast<std::uint64_t>(args.number), args.timeout);
  if (!absl::IsDeadlineExceeded(status)) return status.ok() ? kExitSuccess : FailKv(status);
  return SayNo(absl::StrCat(status.message(), " within ", base::Seconds(*args.timeout)));
}

constexpr struct {
  const char* verb;
  int (*run)(StoreClient& store, const KvArgs& args);
} kVerbs[] = {
    {"get", Get},       {"set", Write},   {"add", Add},   {"append", Write}, {"compare-set", Write},
    {"delete", Delete}, {"check", Check}, {"wait", Wait}, {"count", Count},  {"barrier", Barrier},
};

int CallStore(const KvArgs& args) {
  const auto daemon = DaemonOf(args.endpoint, args.token);
  if (!daemon.ok()) return Fail(kKv, daemon.status().message(), ExitCodeOf(daemon.status()));
  StoreClient store(*daemon, args.run_id);
  for (const auto& [verb, run] : kVerbs) {
    if (args.verb == verb) return run(store, args);
  }
  return kExitBadInput;
}

constexpr base::Flag kKvFlags[] = {
    {.name = "--timeout",
     .verbs = "get|wait|barrier",
     .value_name = "SECONDS",
     .help = "How long get, wait and barrier wait.",
     .default_text = "get not at all, the others as long as the job lives",
     .set = base::Store<base::ReadSeconds, &KvArgs::timeout>},
};

constexpr base::Verb kKvVerbs[] = {
    {"get", "KEY", "Print the value, byte for byte. With --timeout, wait for the key first."},
    {"set", "KEY [VALUE]", "Write a value. Without VALUE, here and below, it is read from stdin."},
    {"add", "KEY [NUMBER]",
     "Add NUMBER (default: 1) to a number and print the sum. A new key is 0."},
    {"append", "KEY [VALUE]", "Write to the end of a value. A new key counts as empty."},
    {"compare-set", "KEY EXPECTED [VALUE]",
     "Write a value if EXPECTED is there, and print what is there then. An empty EXPECTED also "
     "stands for a key that does not exist."},
    {"delete", "KEY", "Remove a key."},
    {"check", "KEY...", "Test whether all of the keys exist."},
    {"wait", "KEY...", "Wait until each of the keys has been set."},
    {"count", "", "Print the number of keys."},
    {"barrier", "NAME COUNT",
     "Wait until COUNT callers wait here at once; then NAME can be used again. All give the same "
     "COUNT. Who gives up or dies no longer counts; a host that lost its power or network counts "
     "for 25 s more. NAME is not a key."},
};

absl::Status ReadWhole(const std::string& text, std::int64_t min, std::int64_t& number) {
  if (absl::SimpleAtoi(text, &number) && number >= min) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not a whole number",
                                                 min > 0 ? absl::StrCat(" of at least ", min) : "",
                                                 "; see `muster kv --help`"));
}

}  // namespace

base::Command KvCommand() {
  return {
      .name = "kv",
      .summary = "read and write a job's key-value store; for scripts",
      .forms = "COMMAND [flags] [arguments]",
      .about =
          R"(The key-value store that a job has at its rendezvous, for scripts that coordinate its nodes. Its
keys live as long as the job does, through restarts: put $MUSTER_ROUND into those that belong to one
round. Flags end at --: muster kv set key -- --value
)",
      .end = R"(Exit codes:
  0  done
  1  the answer is no: no such key (get, delete, check), not in time (get, wait, barrier), another
     value is there (compare-set)
  2  the command line is wrong
  3  no rendezvous answers, it has no such job or refuses, or the job ended meanwhile; when the
     connection broke it is not known whether a write was done
  4  stdout cannot be written
)",
      .hint = "put -- in front of a key or value that begins with '-'",
      .verbs = kKvVerbs,
      .flags = base::WithHelp({RendezvousToolFlags(), kKvFlags}),
      .run = WithArgs<KvArgs, CallStore>};
}

absl::Status KvArgs::Complete(base::Variables variables) {
  if (absl::Status status = RendezvousArgs::Complete(variables); !status.ok()) return status;
  if (run_id.empty()) {
    return absl::InvalidArgumentError(
        "no job is named; give --rdzv-id=JOB, as for `muster run` (a worker finds its own in "
        "TORCHELASTIC_RUN_ID)");
  }
  if (verb == "check" || verb == "wait" || operands.size() < 2) return absl::OkStatus();
  const std::vector<std::string> rest(operands.begin() + 1, operands.end());
  operands.resize(1);
  if (verb == "barrier") return ReadWhole(rest[0], 1, number);
  if (verb == "add") {
    return ReadWhole(rest[0], std::numeric_limits<std::int64_t>::min(), number);
  }
  const bool compares = verb == "compare-set";
  if (compares) expected = rest[0];
  if (rest.size() > (compares ? 1 : 0)) value = rest.back();
  return absl::OkStatus();
}

}  // namespace muster::launcher

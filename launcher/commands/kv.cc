#include "launcher/commands/kv.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/failure.h"
#include "base/phrases.h"
#include "launcher/commands/answer.h"
#include "launcher/commands/kv_call.h"
#include "launcher/commands/rendezvous_args.h"
#include "launcher/environment.h"
#include "launcher/report/exit_code.h"
#include "rendezvous/client/store_client.h"

namespace muster::launcher {
namespace {

using rendezvous::StoreClient;
using Verb = KvCall::Verb;

// "The answer is no": not in time, no such key, another value.
constexpr int kExitNo = 1;

int Say(absl::string_view sentence, int exit_code) {
  std::fprintf(stderr, "muster kv: %s\n", std::string(sentence).c_str());
  return exit_code;
}

int Fail(const absl::Status& status) {
  return Say(status.message(), kExitRendezvousFailed);
}

int PrintAnswer(const std::string& text) {
  return Answer("muster kv", text);
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

int Get(StoreClient& store, const KvCall& call) {
  const std::string& key = call.keys.front();
  if (call.timeout) {
    const absl::StatusOr<std::string> value = store.GetWhenThere(key, call.timeout);
    if (absl::IsDeadlineExceeded(value.status())) {
      return Say(absl::StrCat("key ", Shown(call.keys), " was not set within ",
                              base::Seconds(*call.timeout)),
                 kExitNo);
    }
    return value.ok() ? PrintAnswer(*value) : Fail(value.status());
  }
  const absl::StatusOr<std::optional<std::string>> value = store.Get(key);
  if (!value.ok()) return Fail(value.status());
  if (!value->has_value()) return Say(absl::StrCat("no such key: ", Shown(call.keys)), kExitNo);
  return PrintAnswer(**value);
}

int Write(StoreClient& store, const KvCall& call) {
  const absl::StatusOr<std::string> value =
      call.value ? absl::StatusOr<std::string>(*call.value) : ReadStdin();
  if (!value.ok()) return Fail(value.status());
  const std::string& key = call.keys.front();
  if (call.verb == Verb::kCompareSet) {
    const auto outcome = store.CompareSet(key, call.expected, *value);
    if (!outcome.ok()) return Fail(outcome.status());
    if (!outcome->value) return Say(absl::StrCat("no such key: ", Shown(call.keys)), kExitNo);
    const int printed = PrintAnswer(*outcome->value);
    return printed == kExitSuccess && !outcome->stored ? kExitNo : printed;
  }
  const absl::Status status =
      call.verb == Verb::kSet ? store.Set(key, *value) : store.Append(key, *value);
  return status.ok() ? kExitSuccess : Fail(status);
}

int Add(StoreClient& store, const KvCall& call) {
  const absl::StatusOr<std::int64_t> sum = store.Add(call.keys.front(), call.number);
  return sum.ok() ? PrintAnswer(absl::StrCat(*sum, "\n")) : Fail(sum.status());
}

int Delete(StoreClient& store, const KvCall& call) {
  const absl::StatusOr<bool> existed = store.Delete(call.keys.front());
  if (!existed.ok()) return Fail(existed.status());
  return *existed ? kExitSuccess : Say(absl::StrCat("no such key: ", Shown(call.keys)), kExitNo);
}

// Says nothing, as test(1) does.
int Check(StoreClient& store, const KvCall& call) {
  const absl::StatusOr<bool> all = store.Check(call.keys);
  if (!all.ok()) return Fail(all.status());
  return *all ? kExitSuccess : kExitNo;
}

int Wait(StoreClient& store, const KvCall& call) {
  const absl::Status status = store.Wait(call.keys, call.timeout);
  if (absl::IsDeadlineExceeded(status)) {
    return Say(absl::StrCat(call.keys.size() == 1 ? "key " : "not all of ", Shown(call.keys),
                            call.keys.size() == 1 ? " was not set within " : " were set within ",
                            base::Seconds(*call.timeout)),
               kExitNo);
  }
  return status.ok() ? kExitSuccess : Fail(status);
}

int Count(StoreClient& store) {
  const absl::StatusOr<std::uint64_t> count = store.NumKeys();
  return count.ok() ? PrintAnswer(absl::StrCat(*count, "\n")) : Fail(count.status());
}

int Barrier(StoreClient& store, const KvCall& call) {
  const absl::Status status =
      store.Barrier(call.keys.front(), static_cast<std::uint64_t>(call.number), call.timeout);
  if (!absl::IsDeadlineExceeded(status)) return status.ok() ? kExitSuccess : Fail(status);
  return Say(absl::StrCat(status.message(), " within ", base::Seconds(*call.timeout)), kExitNo);
}

}  // namespace

int KvCommand(const std::vector<std::string>& args) {
  const absl::StatusOr<KvCall> call = ParseKvCall(args, ReadEnvironment(environ));
  if (!call.ok()) return Say(call.status().message(), kExitBadInput);
  if (call->verb == Verb::kHelp) return PrintAnswer(KvHelp());

  const auto daemon = DaemonOf(call->endpoint, call->token);
  if (!daemon.ok()) return Say(daemon.status().message(), kExitBadInput);
  StoreClient store(*daemon, call->run_id);
  switch (call->verb) {
    case Verb::kHelp:
      break;
    case Verb::kGet:
      return Get(store, *call);
    case Verb::kSet:
    case Verb::kAppend:
    case Verb::kCompareSet:
      return Write(store, *call);
    case Verb::kAdd:
      return Add(store, *call);
    case Verb::kDelete:
      return Delete(store, *call);
    case Verb::kCheck:
      return Check(store, *call);
    case Verb::kWait:
      return Wait(store, *call);
    case Verb::kCount:
      return Count(store);
    case Verb::kBarrier:
      return Barrier(store, *call);
  }
  return kExitSuccess;
}

}  // namespace muster::launcher

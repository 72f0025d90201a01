#include "trainer/comm/round_store.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "trainer/compat/torch_compat.h"

namespace muster::trainer {
namespace {

// Keys of the store; the first five are counters.
constexpr char kFit[] = "roll/fit";
constexpr char kUnfit[] = "roll/unfit";
constexpr char kHeard[] = "roll/heard";  // how many ranks know of a failure
constexpr char kByNccl[] = "roll/by_nccl";
constexpr char kOtherwise[] = "roll/otherwise";
constexpr char kFirstOtherwise[] = "roll/first_otherwise";  // a rank, and its reason
constexpr char kAllHeard[] = "roll/all_heard";
constexpr char kWord[] = "roll/word";  // kAllFit, or a failure

constexpr char kAllFit[] = "fit";

bool Serves(const Environment& env) {
  return env.rank == 0 && !env.agent_store;
}

void Set(c10d::Store& store, const char* key, const std::string& value) {
  store.set(key, std::vector<std::uint8_t>(value.begin(), value.end()));
}

// Waits until the key exists.
std::string Get(c10d::Store& store, const char* key) {
  const std::vector<std::uint8_t> bytes = store.get(key);
  return std::string(bytes.begin(), bytes.end());
}

// A failure of `rank` in the store: its code and its sentence.
std::string WordOf(int rank, const absl::Status& failure) {
  return absl::StrCat(static_cast<int>(failure.code()), " rank ", rank,
                      " cannot take part: ", std::string(failure.message()));
}

// Checked once all are ready.
std::string WordOfAllFit(c10d::Store& store, const Environment& env) {
  const std::int64_t by_nccl = store.add(kByNccl, 0);
  if (by_nccl == 0 || by_nccl == env.world_size) return kAllFit;
  return absl::StrCat(static_cast<int>(absl::StatusCode::kInvalidArgument), " ", by_nccl, " of ",
                      env.world_size, " ranks would use NCCL and the others not, among them ",
                      Get(store, kFirstOtherwise),
                      ": start ranks only where there are GPUs, or give --comm gloo to all");
}

absl::Status FailureIn(const std::string& word) {
  const std::size_t space = std::min(word.find(' '), word.size());
  int code = 0;
  if (!absl::SimpleAtoi(word.substr(0, space), &code) || code == 0) {
    return absl::InternalError(absl::StrCat("the store's word on the ranks is '", word, "'"));
  }
  return absl::Status(static_cast<absl::StatusCode>(code), word.substr(space + 1));
}

// Called by each rank that learns of a failure.
void Hear(c10d::Store& store, const Environment& env) {
  if (store.add(kHeard, 1) == env.world_size) Set(store, kAllHeard, "yes");
  if (Serves(env)) Get(store, kAllHeard);
}

}  // namespace

c10::intrusive_ptr<c10d::Store> OpenRoundStore(const Environment& env,
                                               std::chrono::milliseconds timeout) {
  if (env.world_size == 1) return c10::make_intrusive<c10d::HashStore>();
  // A store that survives a restart still has the addresses from before it.
  return c10::make_intrusive<c10d::PrefixStore>(
      absl::StrCat("muster-train/", env.restart_count),
      compat::OpenTcpStore(env.master_addr, env.master_port, Serves(env), timeout));
}

absl::Status CallRoll(c10d::Store& store, const Environment& env, const std::string& why_not_nccl) {
  if (why_not_nccl.empty()) {
    store.add(kByNccl, 1);
  } else if (store.add(kOtherwise, 1) == 1) {
    Set(store, kFirstOtherwise, absl::StrCat("rank ", env.rank, ", where ", why_not_nccl));
  }
  if (store.add(kFit, 1) == env.world_size) Set(store, kWord, WordOfAllFit(store, env));
  const std::string word = Get(store, kWord);
  if (word == kAllFit) return absl::OkStatus();
  try {
    Hear(store, env);
  } catch (const std::exception&) {
    // A rank that never arrived cannot learn of it, and the known failure is reason enough to exit.
  }
  return FailureIn(word);
}

void TellUnfit(const Environment& env, const absl::Status& failure,
               std::chrono::milliseconds timeout) {
  if (env.world_size == 1) return;
  try {
    const compat::Store store = OpenRoundStore(env, timeout);
    // If several ranks fail, all ranks get the first failure.
    if (store->add(kUnfit, 1) == 1) Set(*store, kWord, WordOf(env.rank, failure));
    Hear(*store, env);
  } catch (const std::exception&) {
    // There is no rank to notify.
  }
}

}  // namespace muster::trainer

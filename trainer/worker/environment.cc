#include "trainer/worker/environment.h"

#include <cstdlib>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "worker/env_names.h"

namespace muster::trainer {
namespace {

// Reads whole numbers of one environment, and keeps the first complaint.
class NumberReader {
 public:
  explicit NumberReader(const Lookup& lookup) : lookup_(lookup) {}

  // The value of `name`, which must be in [low, high]; `fallback` when it is not set.
  int Read(const char* name, int fallback, int low, int high) {
    const std::optional<std::string> text = lookup_(name);
    if (!text || text->empty()) return fallback;
    int value = 0;
    if (!absl::SimpleAtoi(*text, &value)) {
      Complain(absl::StrCat(name, "=", *text, " is not a whole number"));
    } else if (value < low || value > high) {
      Complain(absl::StrCat(name, "=", *text, " is not between ", low, " and ", high));
    }
    return value;
  }

  const absl::Status& status() const { return status_; }

 private:
  void Complain(const std::string& sentence) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(sentence);
  }

  const Lookup& lookup_;
  absl::Status status_;
};

}  // namespace

std::optional<std::string> LookupInProcess(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

absl::StatusOr<Environment> ReadEnvironment(const Lookup& lookup) {
  constexpr int kMany = std::numeric_limits<int>::max();
  const auto text = [&lookup](const char* name) { return lookup(name).value_or(""); };

  // A rank without a world size would train alone and write over what the real rank 0 writes.
  if (!text(worker::env::kRank).empty() && text(worker::env::kWorldSize).empty()) {
    return absl::InvalidArgumentError("RANK is set but WORLD_SIZE is not");
  }

  Environment env;
  NumberReader numbers(lookup);
  env.world_size = numbers.Read(worker::env::kWorldSize, 1, 1, kMany);
  env.rank = numbers.Read(worker::env::kRank, -1, 0, kMany);
  env.local_rank = numbers.Read(worker::env::kLocalRank, 0, 0, kMany);
  env.has_local_rank = !text(worker::env::kLocalRank).empty();
  env.local_world_size = numbers.Read(worker::env::kLocalWorldSize, 1, 1, kMany);
  env.restart_count = numbers.Read(worker::env::kRestartCount, 0, 0, kMany);
  env.round = numbers.Read(worker::env::kRound, 0, 0, kMany);
  env.master_port = static_cast<std::uint16_t>(numbers.Read(worker::env::kMasterPort, 0, 1, 65535));
  if (!numbers.status().ok()) return numbers.status();

  env.master_addr = text(worker::env::kMasterAddr);
  // torchrun writes Python's True, and its own workers compare with exactly that.
  env.agent_store = text(worker::env::kUseAgentStore) == "True";
  env.run_id = text(worker::env::kRunId);
  env.beat_socket = text(worker::env::kBeatSocket);
  env.flight_log = text(worker::env::kFlightLog);
  // Not worth a complaint: nothing depends on it, and what is not at the right place is not used.
  if (!absl::SimpleAtoi(text(worker::env::kFlightOffset), &env.flight_offset)) {
    env.flight_log.clear();
  }
  env.gloo_interface = text(worker::env::kGlooSocketIfname);

  if (env.rank < 0) {
    if (env.world_size > 1) {
      return absl::InvalidArgumentError("WORLD_SIZE is set but RANK is not");
    }
    env.rank = 0;
  }
  if (env.rank >= env.world_size) {
    return absl::InvalidArgumentError(
        absl::StrCat("RANK=", env.rank, " is not below WORLD_SIZE=", env.world_size));
  }
  if (env.world_size > 1 && (env.master_addr.empty() || env.master_port == 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("WORLD_SIZE=", env.world_size, " needs MASTER_ADDR and MASTER_PORT"));
  }
  return env;
}

}  // namespace muster::trainer

#include "trainer/app/training/checkpoint_owners.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "trainer/app/training/broadcast.h"

namespace muster::trainer {
namespace {

constexpr std::size_t kMostSign = 64;
constexpr std::size_t kMostRank = 16;

// The directory of a rank that may become an owner; nullopt for other ranks.
absl::StatusOr<std::optional<CheckpointDirectory>> OpenOwn(const CheckpointOptions& options,
                                                           bool candidate) {
  if (!candidate || options.directory.empty()) return std::nullopt;
  absl::StatusOr<CheckpointDirectory> opened =
      CheckpointDirectory::Open(options.directory, options.keep);
  if (!opened.ok()) return opened.status();
  return *std::move(opened);
}

}  // namespace

absl::StatusOr<CheckpointOwners> FindCheckpointOwners(const CheckpointOptions& options,
                                                      int local_rank, Group& group) {
  const bool all_write = options.format == CheckpointFormat::kShards;
  auto directory = OpenOwn(options, all_write || local_rank == 0 || group.rank() == 0);
  absl::StatusOr<std::string> sign = std::string();
  if (!directory.ok()) sign = directory.status();
  if (directory.ok() && *directory) sign = (*directory)->LeaveSign();
  // When this returns, all signs are there.
  const auto signs = FromAll(sign, kMostSign, group);

  // The lowest rank with the same directory, possibly this one.
  int lowest = -1;
  for (int rank = 0; signs.ok() && *directory && lowest < 0; ++rank) {
    const std::string& other = (*signs)[static_cast<std::size_t>(rank)];
    if (!other.empty() && (*directory)->HasSign(other)) lowest = rank;
  }
  // When this returns, all have looked.
  const std::vector<std::string> found = group.Gather(absl::StrCat(lowest), kMostRank);
  if (directory.ok() && *directory && sign.ok()) (*directory)->RemoveSign(*sign);
  if (!signs.ok()) return signs.status();

  CheckpointOwners owners;
  const bool writes = lowest == group.rank() || (all_write && lowest >= 0);
  for (int rank = 0; rank < group.size(); ++rank) {
    const std::string& owner = found[static_cast<std::size_t>(rank)];
    if (owner == absl::StrCat(rank)) owners.ranks.push_back(rank);
    const bool together = all_write ? owner == absl::StrCat(lowest) : rank == group.rank();
    if (writes && together) owners.team.push_back(rank);
  }
  if (writes) owners.directory = *std::move(directory);
  return owners;
}

}  // namespace muster::trainer

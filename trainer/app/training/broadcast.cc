#include "trainer/app/training/broadcast.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <ATen/ops/from_blob.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster::trainer {
namespace {

constexpr std::size_t kMostWords = 2000;  // of a failure
// A tensor of this size at a time, so that a rank never needs twice the memory of a checkpoint.
constexpr std::int64_t kPiece = std::int64_t{64} << 20;

// How rank 0's result is announced: "ok SIZE", or the number of the status code and its sentence.
std::string Announce(const absl::StatusOr<std::string>& found) {
  if (found.ok()) return absl::StrCat("ok ", found->size());
  return absl::StrCat(static_cast<int>(found.status().code()), " ",
                      std::string(found.status().message()).substr(0, kMostWords - 10));
}

}  // namespace

absl::StatusOr<std::string> FromRankZero(const absl::StatusOr<std::string>& found,
                                         ProcessGroup& group) {
  if (group.size() == 1) return found;
  const std::string word = group.Gather(group.rank() == 0 ? Announce(found) : "", kMostWords)[0];
  const std::size_t space = std::min(word.find(' '), word.size() - 1);
  const std::string rest = word.substr(space + 1);
  if (word.substr(0, space) != "ok") {
    int code = 0;
    if (!absl::SimpleAtoi(word.substr(0, space), &code)) code = 2;
    return absl::Status(static_cast<absl::StatusCode>(code), rest);
  }
  std::int64_t size = 0;
  if (!absl::SimpleAtoi(rest, &size)) return absl::InternalError("rank 0 announced no size");

  std::string bytes = group.rank() == 0 ? *found : std::string(static_cast<std::size_t>(size), 0);
  for (std::int64_t begin = 0; begin < size; begin += kPiece) {
    const std::int64_t length = std::min(kPiece, size - begin);
    // Borrows the string's memory.
    const at::Tensor part = at::from_blob(bytes.data() + begin, {length}, at::kByte);
    std::vector<at::Tensor> moved = {part.to(group.device())};
    group.group()->broadcast(moved)->wait();
    part.copy_(moved[0]);
  }
  return bytes;
}

}  // namespace muster::trainer

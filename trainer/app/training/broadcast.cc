#include "trainer/app/training/broadcast.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "trainer/io/byte_source.h"

namespace muster::trainer {
namespace {

constexpr std::size_t kMostWords = 2000;  // of a failure
// A tensor of this size at a time: where tensors have to be on a GPU, it needs no more memory.
constexpr std::int64_t kPiece = std::int64_t{64} << 20;

// A result as text: the number of its status code, and its sentence or `text`.
std::string Encode(const absl::Status& status, const std::string& text) {
  return absl::StrCat(static_cast<int>(status.code()), " ",
                      status.ok() ? text : std::string(status.message()).substr(0, kMostWords));
}

absl::StatusOr<std::string> Decode(const std::string& encoded) {
  const std::size_t space = std::min(encoded.find(' '), encoded.size());
  const std::string rest = encoded.substr(std::min(space + 1, encoded.size()));
  int code = static_cast<int>(absl::StatusCode::kUnknown);
  if (absl::SimpleAtoi(encoded.substr(0, space), &code) && code == 0) return rest;
  return absl::Status(static_cast<absl::StatusCode>(code), rest);
}

// Fills `part`, bytes on the CPU, with those of rank `root`.
void Broadcast(int root, const at::Tensor& part, Group& group) {
  if (group.size() == 1) return;
  const at::Tensor moved = part.to(group.device());
  group.Broadcast(moved, root, Use::kOther);
  part.copy_(moved);
}

}  // namespace

absl::StatusOr<std::string> FromRank(int root, const absl::StatusOr<std::string>& found,
                                     Group& group) {
  if (group.size() == 1) return found;
  const bool sends = group.rank() == root;
  const std::string size = sends && found.ok() ? absl::StrCat(found->size()) : "";
  const std::vector<std::string> all =
      group.Gather(sends ? Encode(found.status(), size) : "", kMostWords + 10);
  const absl::StatusOr<std::string> announced = Decode(all[static_cast<std::size_t>(root)]);
  if (!announced.ok()) return sends ? found.status() : announced.status();
  std::size_t count = 0;
  if (!absl::SimpleAtoi(*announced, &count)) {
    return absl::InternalError(absl::StrCat("rank ", root, " announced no size"));
  }
  std::string bytes = sends ? *found : std::string(count, 0);
  if (count == 0) return bytes;
  Broadcast(root, at::from_blob(bytes.data(), {static_cast<std::int64_t>(count)}, at::kByte),
            group);
  return bytes;
}

absl::StatusOr<at::Tensor> FileFromRank(int root, const std::string& path, Group& group) {
  const bool sends = group.rank() == root;
  std::unique_ptr<FileSource> file;
  absl::StatusOr<std::string> size = std::string();
  if (sends) {
    absl::StatusOr<std::unique_ptr<FileSource>> opened = FileSource::Open(path);
    if (opened.ok()) file = *std::move(opened);
    size = file ? absl::StatusOr<std::string>(absl::StrCat(file->size())) : opened.status();
  }
  size = FromRank(root, size, group);
  if (!size.ok()) return size.status();
  std::int64_t count = 0;
  if (!absl::SimpleAtoi(*size, &count)) {
    return absl::InternalError(absl::StrCat("rank ", root, " announced no size of ", path));
  }
  const at::Tensor bytes = at::empty({count}, at::kByte);
  absl::Status read;
  for (std::int64_t begin = 0; begin < count; begin += kPiece) {
    const at::Tensor part = bytes.narrow(0, begin, std::min(kPiece, count - begin));
    if (sends && read.ok()) {
      read = file->Read(static_cast<std::uint64_t>(begin), part.data_ptr(), part.nbytes());
    }
    Broadcast(root, part, group);
  }
  // Said last: a rank that fails in the middle still takes part in what the others wait for.
  read =
      FromRank(root, read.ok() ? absl::StatusOr<std::string>(std::string()) : read, group).status();
  if (!read.ok()) return read;
  return bytes;
}

absl::StatusOr<std::vector<std::string>> FromAll(const absl::StatusOr<std::string>& mine,
                                                 std::size_t most, Group& group) {
  std::vector<std::string> all =
      group.Gather(Encode(mine.status(), mine.ok() ? *mine : ""), std::max(most, kMostWords) + 10);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    absl::StatusOr<std::string> decoded = Decode(all[rank]);
    if (decoded.ok()) {
      all[rank] = *std::move(decoded);
    } else if (static_cast<int>(rank) == group.rank()) {
      return mine.status();
    } else {
      return absl::Status(decoded.status().code(),
                          absl::StrCat("on rank ", rank, ": ", decoded.status().message()));
    }
  }
  return all;
}

absl::Status FirstFailure(const absl::Status& mine, Group& group) {
  return FromAll(mine.ok() ? absl::StatusOr<std::string>(std::string()) : mine, 0, group).status();
}

}  // namespace muster::trainer

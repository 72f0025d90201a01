#include "trainer/io/shards/checkpoint_file.h"

#include <filesystem>
#include <system_error>

#include "trainer/io/shards/sharded_checkpoint.h"
#include "trainer/io/torch_file.h"

namespace muster::trainer {
namespace {

bool IsFolder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

}  // namespace

absl::StatusOr<Value> ReadCheckpoint(const std::string& path) {
  return IsFolder(path) ? ReadShards(path) : ReadTorchFile(path);
}

absl::Status CheckCheckpoint(const std::string& path) {
  return IsFolder(path) ? CheckShards(path) : CheckTorchFile(path);
}

}  // namespace muster::trainer

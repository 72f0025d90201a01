#include "trainer/io/checkpoint.h"

#include "trainer/io/state_dict.h"
#include "trainer/io/torch_file.h"

namespace muster::trainer {

absl::Status SaveStateDict(const std::vector<NamedTensor>& tensors, const std::string& path) {
  return WriteTorchFile(StateDictValue(tensors), path);
}

}  // namespace muster::trainer

// The LibTorch side of scripts/compat/checkpoints26.sh, which exchanges files with another Python.
//   interop_program write DIR      writes ours_*.pt and prints what is in each
//   interop_program describe DIR   prints what is read from each py_*.pt
//   interop_program copy DIR       reads py_run.pt and writes it again as ours_run.pt
//   interop_program speed DIR      times WriteTorchFile and ReadTorchFile of 100 MB
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/rand.h>

#include "absl/strings/str_format.h"

#include "test/trainer/io/interop_files.h"
#include "trainer/io/state_dict.h"
#include "trainer/io/torch_file.h"

namespace muster::trainer {
namespace {

// MB/s, as a median of seven by wall-clock time, and by CPU time: the machine may be busy.
std::string Rate(const std::function<bool()>& action) {
  std::vector<double> seconds;
  std::vector<double> busy;
  for (int i = 0; i < 7; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const std::clock_t busy_begin = std::clock();
    if (!action()) std::abort();
    busy.push_back(static_cast<double>(std::clock() - busy_begin) / CLOCKS_PER_SEC);
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(seconds.begin(), seconds.end());
  std::sort(busy.begin(), busy.end());
  return absl::StrFormat("%.0f MB/s (%.0f of processor time)", 104.8576 / seconds[3],
                         104.8576 / busy[3]);
}

void Speed(const std::string& dir) {
  std::vector<NamedTensor> tensors;
  for (int i = 0; i < 100; ++i) {
    tensors.push_back({"layer" + std::to_string(i) + ".weight", at::rand({256, 1024})});
  }
  const Value state = StateDictValue(tensors);
  const std::string path = dir + "/ours_speed.pt";
  const std::string save = Rate([&] { return WriteTorchFile(state, path).ok(); });
  const std::string load = Rate([&] { return ReadTorchFile(path).ok(); });
  std::printf("muster: save with fsync %s, load with checksums %s\n", save.c_str(), load.c_str());
}

}  // namespace
}  // namespace muster::trainer

int main(int argc, char** argv) {
  using namespace muster::trainer;
  if (argc != 3) return 2;
  const std::string what = argv[1];
  const std::string dir = argv[2];
  if (what == "write") {
    std::fputs(WriteFilesForPython(dir).c_str(), stdout);
  } else if (what == "describe") {
    std::fputs(DescribeFilesOfPython(dir).c_str(), stdout);
  } else if (what == "copy") {
    CopyCheckpoint(dir + "/py_run.pt", dir + "/ours_run.pt");
  } else if (what == "speed") {
    Speed(dir);
  } else {
    return 2;
  }
  return 0;
}

// A device for tests without a GPU: its memory is the CPU's, and it records what its streams are
// asked to do.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace muster::trainer {

// Tensors can be created there and copied, by .to() and the like; LibTorch cannot compute with
// them.
at::Device DiaryDevice();

// The requests since the last call, by all threads. Stream 0 is the threads' initial one, 7 that of
// the pool:
//   device 1                     a thread has chosen it
//   copy on stream 7             copy on stream 7, waiting
//   mark stream 7                an event was recorded there
//   stream 0 waits for the mark
//   keep for stream 0            memory was taken into use there
//   wait for stream 0            by the thread
std::vector<std::string> ReadDiary();

}  // namespace muster::trainer

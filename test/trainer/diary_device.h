// A device for tests, where there is no GPU: its memory is the processor's, and it writes down what
// its streams are asked for.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace muster::trainer {

// The second of two. Tensors are made there and copied, by .to() and the like; LibTorch computes
// nothing with them.
at::Device DiaryDevice();

// What it was asked for since the last call, by all threads. Stream 0 is the one that threads begin
// with, 7 that of the pool:
//   device 1                     a thread has chosen it
//   copy on stream 7             copy on stream 7, waiting
//   mark stream 7                an event was recorded there
//   stream 0 waits for the mark
//   keep for stream 0            memory was taken into use there
//   wait for stream 0            by the thread
std::vector<std::string> ReadDiary();

}  // namespace muster::trainer

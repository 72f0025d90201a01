// Runs this machine's Python for PyTorch's own results.
#pragma once

#include <string>
#include <vector>

#include "trainer/runtime/named_tensor.h"

namespace muster::trainer {

// Runs `script`, a path relative to the source root, with `arguments`, which must not contain
// quotes, and returns its output. Fails the test if it does not exit with 0. Scripts can import
// tensors (testdata/tensors.py).
std::string RunPython(const std::string& script, const std::vector<std::string>& arguments);

// Reads what a script wrote to `path` with tensors.write.
std::vector<NamedTensor> ReadTensors(const std::string& path);

// The tensor called `name`. If there is none, fails the test and returns an undefined tensor.
at::Tensor Find(const std::vector<NamedTensor>& tensors, const std::string& name);

// A path where the running test can write a file.
std::string TestFile(const std::string& name);

}  // namespace muster::trainer

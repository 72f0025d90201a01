// Asks the Python of this machine what PyTorch itself computes.
#pragma once

#include <string>
#include <vector>

#include "trainer/named_tensor.h"

namespace muster::trainer {

// Runs the script, a path from the root of the source tree, with `arguments`, none of which has
// quotes in it, and returns what it prints. Fails the test if it does not exit with 0. Scripts can
// import tensors (testdata/tensors.py).
std::string RunPython(const std::string& script, const std::vector<std::string>& arguments);

// What a script wrote to `path` with tensors.write.
std::vector<NamedTensor> ReadTensors(const std::string& path);

// The tensor called `name`; fails the test, and gives an undefined one, if there is none.
at::Tensor Find(const std::vector<NamedTensor>& tensors, const std::string& name);

// A path for a file of the running test.
std::string TestFile(const std::string& name);

}  // namespace muster::trainer

// Files that go between LibTorch and Python, and a way to compare what either side sees in them.
#pragma once

#include <string>

#include "trainer/io/value.h"

namespace muster::trainer {

// `value` in the words of interop.py's describe(): exact, with the bits of floats and tensors.
std::string Describe(const Value& value);

// Writes ours_*.pt and ours.safetensors into the directory `dir`, and returns a line "name:
// description" for each, sorted by name. Aborts when that fails.
std::string WriteFilesForPython(const std::string& dir);

// The same lines for the files py_*.pt and py*.safetensors that are in `dir`, as they are read; for
// those that are refused, "name: error: the sentence".
std::string DescribeFilesOfPython(const std::string& dir);

// Reads the checkpoint `from` and writes it to `to`. Aborts when that fails.
void CopyCheckpoint(const std::string& from, const std::string& to);

}  // namespace muster::trainer

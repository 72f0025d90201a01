// Files exchanged between LibTorch and Python, and a way to compare what each side reads.
#pragma once

#include <string>

#include "trainer/io/state_dict.h"

namespace muster::trainer {

// Describes `value` like interop.py's describe(): exactly, with the bits of floats and tensors.
std::string Describe(const Value& value);

// Writes ours_*.pt and ours.safetensors into the directory `dir`, and returns a line "name:
// description" for each, sorted by name. Aborts on failure.
std::string WriteFilesForPython(const std::string& dir);

// Reads the files py_*.pt and py*.safetensors in `dir` and returns the same lines; for a refused
// file, "name: error: the sentence".
std::string DescribeFilesOfPython(const std::string& dir);

// Reads the checkpoint `from` and writes it to `to`. Aborts on failure.
void CopyCheckpoint(const std::string& from, const std::string& to);

}  // namespace muster::trainer

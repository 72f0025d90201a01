#include "test/trainer/models/python.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace muster::trainer {
namespace {

// What the command prints, and its exit status as waitpid gives it.
std::pair<std::string, int> Run(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {"popen failed", -1};
  std::string output;
  std::array<char, 4096> buffer{};
  while (const std::size_t got = fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.append(buffer.data(), got);
  }
  return {output, pclose(pipe)};
}

at::ScalarType TypeNamed(const std::string& name) {
  if (name == "float32") return at::kFloat;
  if (name == "float64") return at::kDouble;
  EXPECT_EQ(name, "int64");
  return at::kLong;
}

}  // namespace

std::string RunPython(const std::string& script, const std::vector<std::string>& arguments) {
  std::string command =
      "PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=test/trainer/models/testdata /usr/bin/python3 '" +
      script + "'";
  for (const std::string& argument : arguments) command += " '" + argument + "'";
  const auto [output, status] = Run(command + " 2>&1");
  EXPECT_EQ(status, 0) << command << "\n" << output;
  return output;
}

std::vector<NamedTensor> ReadTensors(const std::string& path) {
  std::vector<NamedTensor> tensors;
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::string header;
  while (std::getline(file, header)) {
    std::istringstream words(header);
    std::string name;
    std::string type;
    words >> name >> type;
    std::vector<std::int64_t> sizes;
    for (std::int64_t size = 0; words >> size;) sizes.push_back(size);
    const at::Tensor tensor = at::empty(sizes, TypeNamed(type));
    file.read(static_cast<char*>(tensor.data_ptr()), static_cast<std::streamsize>(tensor.nbytes()));
    EXPECT_TRUE(file) << path << " is cut short in " << name;
    tensors.push_back({name, tensor});
  }
  return tensors;
}

at::Tensor Find(const std::vector<NamedTensor>& tensors, const std::string& name) {
  for (const NamedTensor& item : tensors) {
    if (item.name == name) return item.tensor;
  }
  ADD_FAILURE() << "there is no " << name;
  return {};
}

std::string TestFile(const std::string& name) {
  return testing::TempDir() + "/" +
         std::to_string(testing::UnitTest::GetInstance()->random_seed()) + name;
}

}  // namespace muster::trainer

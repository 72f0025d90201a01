// muster-train that counts how often it reads a number from a tensor, which on a GPU means a
// synchronization, and prints "read N numbers" to stderr at its end.
#include <atomic>
#include <cstdio>
#include <cstring>

#include <ATen/record_function.h>

#include "trainer/app/program.h"
#include "trainer/models/registry.h"

namespace {

std::atomic<int> g_reads = 0;

}  // namespace

int main(int argc, char** argv) {
  at::addGlobalCallback(at::RecordFunctionCallback([](const at::RecordFunction& function)
                                                       -> std::unique_ptr<at::ObserverContext> {
                          if (std::strcmp(function.name(), "aten::_local_scalar_dense") == 0)
                            ++g_reads;
                          return nullptr;
                        }).scopes({at::RecordScope::FUNCTION}));
  const int code = muster::trainer::RunProgram(argc, argv, muster::trainer::BuiltInRecipes(), {});
  std::fprintf(stderr, "read %d numbers\n", g_reads.load());
  return code;
}

// muster-train that counts how often a number of a tensor is read, which on a GPU is how often it
// is waited for, and prints "read N numbers" to stderr when it ends.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <ATen/record_function.h>

#include "trainer/app/program.h"
#include "trainer/recipe/registry.h"

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
  std::atexit([] { std::fprintf(stderr, "read %d numbers\n", g_reads.load()); });
  return muster::trainer::RunProgram(argc, argv, muster::trainer::BuiltInRecipes(), {});
}

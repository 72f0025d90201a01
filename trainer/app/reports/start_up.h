// The lines printed before the first step.
#pragma once

#include <string>

#include "trainer/app/options/options.h"
#include "trainer/comm/world.h"
#include "trainer/worker/environment.h"

namespace muster::trainer {

// What the data is called: "idx (/usr/share/datasets/fashion-mnist)", "generated text".
std::string DataName(const Options& options);

// The first line, printed before anything slow: "muster-train: cnn on idx (/usr/share/...), rank 0
// of 2, 1 thread each, BLAS 118 GFLOP/s".
std::string StartLine(const Options& options, const Environment& env, int threads, double gflops);

// The second line, printed once the ranks have met: "joined: shm on cpu (shared memory: 2 ranks on
// one host)".
std::string JoinedLine(const World& world);

}  // namespace muster::trainer

// What one rank trains, and with whom.
#pragma once

#include "trainer/app/options/options.h"
#include "trainer/app/reports/progress.h"
#include "trainer/comm/group.h"
#include "trainer/comm/world.h"
#include "trainer/data/dataset.h"
#include "trainer/worker/beat.h"
#include "trainer/worker/environment.h"

namespace muster::trainer {

// Fixed before the first step. All parts outlive whatever is given it. One thread.
struct Job {
  const Options& options;  // with the shape of the data
  const Environment& env;
  const Splits& data;
  World& world;
  Progress& progress;
  BeatSender& beats;

  Group& group() const { return world.all(); }
  bool leads() const { return env.rank == 0; }
  // What a sample is called: "images" or "windows".
  const char* unit() const { return SampleUnit(data.train->shape().kind); }
};

}  // namespace muster::trainer

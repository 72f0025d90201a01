// Parameters that stages on several ranks of a pipeline share, such as tied embeddings.
#pragma once

#include <string>
#include <vector>

#include "trainer/comm/group.h"
#include "trainer/models/model.h"
#include "trainer/named_tensor.h"
#include "trainer/pipeline/pipeline_schedule.h"

namespace muster::trainer {

// Parameters, by name, that these stages of the pipeline have in common, and no others.
struct SharedParameters {
  std::vector<int> ranks;  // two or more, in order
  std::vector<std::string> names;
};

// All parameters that more than one rank of a pipeline uses. `parts` are the stages of each part.
// The same on every rank, in the same order; empty for models that share nothing, or on one rank.
std::vector<SharedParameters> FindShared(const Model& model, const PipelineShape& shape,
                                         const std::vector<StageRange>& parts);

// Makes the gradients of `parameters` those of the whole model: each has its sum over the members
// of `group`, which are the ranks that share these parameters. So their optimizers keep them equal,
// bit for bit. Call it once in a step, when all micro-batches have gone backward; a gradient that
// this rank has none of counts as zero. All members call it with the same parameters. Does nothing
// in a group of one.
void SumSharedGradients(const std::vector<NamedTensor>& parameters, Group& group);

}  // namespace muster::trainer

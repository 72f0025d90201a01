// The loss and the metrics of scores of which each rank has a part.
#pragma once

#include <cstdint>
#include <memory>

#include <ATen/core/Tensor.h>

#include "trainer/models/objective.h"
#include "trainer/models/tensor_links.h"

namespace muster::trainer {

// CrossEntropySum() of the scores of which this rank has `part_of_scores`: ... x K / parts, padded
// to equal parts with -infinity, where K is `classes`. The ranks exchange three numbers for each
// prediction, a maximum and two sums, and in the backward pass nothing. The same value on all
// ranks. Throws std::invalid_argument with one sentence when, on the CPU, a target is no class.
at::Tensor SplitCrossEntropySum(const at::Tensor& part_of_scores, const at::Tensor& targets,
                                std::int64_t classes, TensorLinks& links);

// CountCorrect() of the same scores. Of several scores that are the highest the first counts, there
// as here. The ranks exchange a score and an index for each prediction.
at::Tensor SplitCountCorrect(const at::Tensor& part_of_scores, const at::Tensor& targets,
                             TensorLinks& links);

// `objective`, to be called with a part of the scores instead of all of them: gives the same values
// on all ranks, and the right gradients. CrossEntropySum and CountCorrect work on parts; for any
// other function the scores are gathered first.
Objective ObjectiveOfParts(const Objective& objective, std::int64_t classes,
                           const std::shared_ptr<TensorLinks>& links);

}  // namespace muster::trainer

// A sum of losses over predictions.
#pragma once

namespace muster::trainer {

// Over one rank or all, over one step or many.
struct LossSum {
  double loss = 0;         // nats
  double predictions = 0;  // images, or bytes of text

  // NaN when there is nothing to take the mean of.
  double mean() const { return loss / predictions; }
  LossSum& operator+=(const LossSum& other) {
    loss += other.loss;
    predictions += other.predictions;
    return *this;
  }
};

}  // namespace muster::trainer

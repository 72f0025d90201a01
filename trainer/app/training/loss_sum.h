// A sum of losses over predictions.
#pragma once

namespace muster::trainer {

// Over one rank or all, over one step or many.
struct LossSum {
  double loss = 0;         // nats
  double predictions = 0;  // images, or bytes of text

  double mean() const { return predictions > 0 ? loss / predictions : 0; }
  LossSum& operator+=(const LossSum& other) {
    loss += other.loss;
    predictions += other.predictions;
    return *this;
  }
};

}  // namespace muster::trainer

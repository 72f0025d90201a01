#include "trainer/app/summary.h"

#include "absl/strings/str_format.h"

namespace muster::trainer {

std::string FormatSummary(const Summary& summary) {
  const std::string accuracy = summary.test_accuracy
                                   ? absl::StrFormat("%.2f %%", *summary.test_accuracy * 100)
                                   : "not measured";
  return absl::StrFormat(
      "world size     %d (%s)\n"
      "restarts       %d\n"
      "epochs         %d (%d steps of %d images)\n"
      "train loss     %.4f (mean of the last epoch)\n"
      "test accuracy  %s\n"
      "speed          %.0f images/s\n"
      "checkpoint     %s\n",
      summary.world_size, summary.backend, summary.restart_count, summary.epochs, summary.steps,
      summary.batch_size, summary.train_loss, accuracy, summary.images_per_second,
      summary.checkpoint);
}

}  // namespace muster::trainer

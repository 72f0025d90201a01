#include "trainer/data/loading/batch_loader.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "trainer/data/loading/device_copies.h"
#include "trainer/worker/one_line.h"

namespace muster::trainer {
namespace {

std::string RowsOf(const at::Tensor& tensor) {
  if (!tensor.defined()) return "none";
  return tensor.dim() == 0 ? "a single number" : absl::StrCat(tensor.size(0), " rows");
}

// kInvalidArgument unless there is a row for each sample that was asked for.
absl::Status CheckRows(const Batch& batch, std::size_t samples) {
  const std::string wanted = absl::StrCat(samples, " rows");
  const std::string inputs = RowsOf(batch.inputs);
  const std::string targets = RowsOf(batch.targets);
  if (inputs != wanted || targets != wanted) {
    return absl::InvalidArgumentError(absl::StrCat("the data set was asked for ", samples,
                                                   " samples, and returned inputs: ", inputs,
                                                   ", targets: ", targets));
  }
  if (batch.targets.numel() > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the data set returned targets without elements, so there is nothing to predict");
}

}  // namespace

// The state that Next() and the threads share. Three tickets say where it stands: consumed_ (the
// batch Next() gives next) <= drawn_ (the one a thread takes next) <= consumed_ + queue. A slot
// belongs to the thread that drew its ticket until it is filled, then to Next().
class BatchLoader::Pipeline {
 public:
  Pipeline(std::shared_ptr<const Dataset> dataset, BatchPlan plan,
           const BatchLoaderOptions& options)
      : dataset_(std::move(dataset)),
        plan_(std::move(plan)),
        options_(options),
        copies_(options.device),
        slots_(static_cast<std::size_t>(std::max(options.queue, 1))) {
    try {
      for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { Work(); });
    } catch (...) {
      Stop();  // those that did start must not outlive what they work on
      throw;
    }
  }

  ~Pipeline() { Stop(); }

  absl::StatusOr<std::optional<LoadedBatch>> Next() {
    std::unique_lock lock(mutex_);
    if (consumed_ == steps()) return std::nullopt;
    const std::size_t ticket = consumed_;
    if (threads_.empty()) {
      ++consumed_;
      return Receive(Gather(ticket));
    }
    Slot& slot = slots_[ticket % slots_.size()];
    filled_.wait(lock, [&] { return slot.has_value(); });
    absl::StatusOr<Gathered> gathered = *std::move(slot);
    slot.reset();
    ++consumed_;
    lock.unlock();
    room_.notify_one();
    return Receive(std::move(gathered));
  }

 private:
  struct Gathered {
    RankBatch plan;
    DeviceCopies::Copy copy;
  };
  using Slot = std::optional<absl::StatusOr<Gathered>>;

  absl::StatusOr<std::optional<LoadedBatch>> Receive(absl::StatusOr<Gathered> gathered) const {
    if (!gathered.ok()) return gathered.status();
    return LoadedBatch{copies_.Receive(std::move(gathered->copy)), std::move(gathered->plan)};
  }

  void Work() {
    copies_.EnterThread();
    std::unique_lock lock(mutex_);
    for (;;) {
      room_.wait(lock, [&] {
        return stopping_ || drawn_ == steps() || drawn_ < consumed_ + slots_.size();
      });
      if (stopping_ || drawn_ == steps()) {
        // What woke this thread may have been meant for one that has the same to find out.
        room_.notify_one();
        return;
      }
      const std::size_t ticket = drawn_++;
      lock.unlock();
      absl::StatusOr<Gathered> gathered = Gather(ticket);
      lock.lock();
      slots_[ticket % slots_.size()].emplace(std::move(gathered));
      filled_.notify_one();
    }
  }

  std::size_t steps() const { return static_cast<std::size_t>(plan_.steps); }

  // Changes nothing, so no lock is needed.
  absl::StatusOr<Gathered> Gather(std::size_t ticket) const {
    try {
      RankBatch plan = plan_.at(static_cast<std::int64_t>(ticket));
      Batch batch = dataset_->Gather(plan.indices, options_.epoch, options_.train);
      const absl::Status fits = CheckRows(batch, plan.indices.size());
      if (!fits.ok()) return fits;
      return Gathered{std::move(plan), copies_.Begin(std::move(batch))};
    } catch (const std::invalid_argument& error) {
      return absl::InvalidArgumentError(OneLine(error));
    } catch (const std::exception& error) {
      return absl::UnavailableError(absl::StrCat("gather batch ", ticket + 1, " of ", steps(),
                                                 " of epoch ", options_.epoch + 1, ": ",
                                                 OneLine(error)));
    }
  }

  void Stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    room_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  const std::shared_ptr<const Dataset> dataset_;
  const BatchPlan plan_;
  const BatchLoaderOptions options_;
  const DeviceCopies copies_;

  std::mutex mutex_;
  std::condition_variable room_;    // for threads: a ticket can be drawn, or there is no more work
  std::condition_variable filled_;  // for Next(): a slot was filled
  std::vector<Slot> slots_;
  std::size_t consumed_ = 0;
  std::size_t drawn_ = 0;
  bool stopping_ = false;

  std::vector<std::thread> threads_;  // last, as it uses all the others
};

BatchLoader::BatchLoader(std::shared_ptr<const Dataset> dataset, BatchPlan plan,
                         const BatchLoaderOptions& options)
    : pipeline_(std::make_unique<Pipeline>(std::move(dataset), std::move(plan), options)) {}

BatchLoader::~BatchLoader() = default;

absl::StatusOr<std::optional<LoadedBatch>> BatchLoader::Next() {
  return pipeline_->Next();
}

}  // namespace muster::trainer

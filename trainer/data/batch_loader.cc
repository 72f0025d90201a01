#include "trainer/data/batch_loader.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "trainer/runtime/failure.h"

namespace muster::trainer {
namespace {

std::string RowsOf(const at::Tensor& tensor) {
  if (!tensor.defined()) return "none";
  return tensor.dim() == 0 ? "a single number" : absl::StrCat(tensor.size(0), " rows");
}

// kInvalidArgument unless there is exactly one row per requested sample.
absl::Status CheckRows(const Batch& batch, std::size_t samples) {
  const std::string wanted = absl::StrCat(samples, " rows");
  const std::string inputs = RowsOf(batch.inputs);
  const std::string targets = RowsOf(batch.targets);
  if (inputs != wanted || targets != wanted) {
    return absl::InvalidArgumentError(absl::StrCat("the data set was asked for ", samples,
                                                   " samples, and returned inputs: ", inputs,
                                                   ", targets: ", targets));
  }
  for (std::size_t i = 0; i < batch.others.size(); ++i) {
    const std::string other = RowsOf(batch.others[i]);
    if (other == wanted) continue;
    return absl::InvalidArgumentError(absl::StrCat("the data set was asked for ", samples,
                                                   " samples, and tensor ", i,
                                                   " of Batch::others has ", other));
  }
  if (batch.targets.numel() > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the data set returned targets without elements, so there is nothing to predict");
}

}  // namespace

// The state shared by Next() and the threads. Its positions: consumed_ (the next batch for Next())
// <= drawn_ (the next one for a thread) <= consumed_ + queue. A slot belongs to the thread that
// drew its ticket until it is filled, then to Next().
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
      Stop();  // those that did start must not outlive their data
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
        // The wake-up may have been meant for another thread that also has to see this.
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

  // Modifies nothing, so no lock is needed.
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

  std::vector<std::thread> threads_;  // last, as they use all other members
};

BatchLoader::BatchLoader(std::shared_ptr<const Dataset> dataset, BatchPlan plan,
                         const BatchLoaderOptions& options)
    : pipeline_(std::make_unique<Pipeline>(std::move(dataset), std::move(plan), options)) {}

BatchLoader::~BatchLoader() = default;

absl::StatusOr<std::optional<LoadedBatch>> BatchLoader::Next() {
  return pipeline_->Next();
}

using c10::impl::VirtualGuardImpl;

DeviceCopies::DeviceCopies(const at::Device& device) : device_(device) {
  if (!device.is_cpu()) stream_ = VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
}

void DeviceCopies::EnterThread() const {
  if (stream_) VirtualGuardImpl(device_.type()).setDevice(device_);
}

DeviceCopies::Copy DeviceCopies::Begin(Batch batch) const {
  if (!stream_) return {std::move(batch), std::nullopt};
  const c10::StreamGuard guard(*stream_);
  Copy copy = {{Fetch(batch.inputs), Fetch(batch.targets)}, c10::Event(device_.type())};
  for (const at::Tensor& other : batch.others) copy.batch.others.push_back(Fetch(other));
  copy.arrival->record(*stream_);
  return copy;
}

Batch DeviceCopies::Receive(Copy copy) const {
  if (!copy.arrival) return std::move(copy.batch);
  const VirtualGuardImpl guard(device_.type());
  const c10::Stream current = guard.getStream(device_);
  copy.arrival->block(current);
  const auto keep = [&](const at::Tensor& tensor) {
    // It was allocated for the copying stream, which must not reuse it before this stream is done
    // with it.
    guard.recordDataPtrOnStream(tensor.storage().data_ptr(), current);
  };
  keep(copy.batch.inputs);
  keep(copy.batch.targets);
  for (const at::Tensor& other : copy.batch.others) keep(other);
  return std::move(copy.batch);
}

// A copy from memory that is not pinned would block the thread.
at::Tensor DeviceCopies::Fetch(const at::Tensor& tensor) const {
  const at::Tensor source = device_.is_cuda() ? tensor.pin_memory() : tensor;
  return source.to(device_, tensor.scalar_type(), /*non_blocking=*/true);
}

}  // namespace muster::trainer

#include "worker/group/start_queue.h"

#include <chrono>
#include <iterator>

#include <boost/asio/post.hpp>

namespace muster::worker {
namespace {

// Before each further try when the system has no process to give; two seconds altogether. Whatever
// used them up may end meanwhile: the workers of the round before, a build.
constexpr std::chrono::milliseconds kForkPauses[] = {
    std::chrono::milliseconds(30),  std::chrono::milliseconds(60),  std::chrono::milliseconds(120),
    std::chrono::milliseconds(240), std::chrono::milliseconds(480), std::chrono::milliseconds(960)};

}  // namespace

void StartQueue::Begin(std::vector<WorkerSpec> specs) {
  waiting_.assign(std::make_move_iterator(specs.rbegin()), std::make_move_iterator(specs.rend()));
  StartRest(0);
}

void StartQueue::StartRest(std::size_t tries) {
  for (; !waiting_.empty(); waiting_.pop_back()) {
    const absl::Status status = callbacks_.start(waiting_.back());
    if (status.ok()) continue;
    if (!absl::IsResourceExhausted(status) || tries == std::size(kForkPauses)) {
      Post([this, spec = std::move(waiting_.back()), status] {
        callbacks_.on_failed(spec, status);
      });
      waiting_.clear();
      return;
    }
    retry_.expires_after(kForkPauses[tries]);
    retry_.async_wait(lifetime_.Guard([this, tries](boost::system::error_code error) {
      if (!error && !waiting_.empty()) StartRest(tries + 1);
    }));
    return;
  }
  Post(callbacks_.on_over);
}

void StartQueue::Drop() {
  if (waiting_.empty()) return;
  waiting_.clear();
  retry_.cancel();
  Post(callbacks_.on_over);
}

void StartQueue::Post(std::function<void()> call) {
  boost::asio::post(io_, lifetime_.Guard(std::move(call)));
}

}  // namespace muster::worker

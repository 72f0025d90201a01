#include "rendezvous/fronts/change_feed.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "rendezvous/core/milestone.h"

namespace muster::rendezvous {
namespace {

constexpr std::chrono::milliseconds kStepPause(1000);
constexpr std::size_t kBytesInASecond = 64 << 10;

}  // namespace

bool AnyRankTells(const JobSnapshot& job) {
  return std::any_of(job.nodes.begin(), job.nodes.end(),
                     [](const NodeSnapshot& node) { return !node.ranks.empty(); });
}

std::chrono::milliseconds ChangeFeed::PauseAfter(bool any_rank_tells, std::size_t bytes) {
  if (!any_rank_tells) return kAtLeast;
  const std::chrono::milliseconds by_length(1000 * bytes / kBytesInASecond);
  return std::clamp<std::chrono::milliseconds>(by_length, kStepPause, kAtLeast);
}

void ChangeFeed::Begin() {
  if (runs_) return;
  all_are_due_ = std::chrono::steady_clock::now() + Pause();
  PublishAfter(Pause());
}

std::chrono::milliseconds ChangeFeed::Pause() const {
  std::chrono::milliseconds pause = kAtLeast;
  for (const Publisher* const publisher : publishers_) pause = std::min(pause, publisher->pause());
  return pause;
}

void ChangeFeed::Changed(const std::string& tenant, const Transition& transition) {
  if (!runs_) return;
  const bool is_first = news_.empty();
  auto& ended = news_[tenant].ended;
  if (const auto* const end = std::get_if<JobEnded>(&transition.milestone)) {
    if (ended.size() >= kMostEnds) ended.erase(ended.begin());
    ended.push_back(
        std::make_shared<const JobEnd>(JobEnd{transition.run_id, end->how, transition.text}));
  }
  if (is_first) PublishAfter(kSoon);
}

void ChangeFeed::Flush() {
  if (!news_.empty()) Publish();
}

std::size_t ChangeFeed::PendingEnds(const std::string& tenant) const {
  const auto news = news_.find(tenant);
  return news == news_.end() ? 0 : news->second.ended.size();
}

void ChangeFeed::PublishAfter(std::chrono::milliseconds pause) {
  runs_ = true;
  timer_.expires_after(pause);
  timer_.async_wait(lifetime_.Guard([this](const boost::system::error_code& error) {
    if (!error) Publish();
  }));
}

void ChangeFeed::Publish(const News& news) {
  for (Publisher* const publisher : publishers_) publisher->Publish(news);
}

void ChangeFeed::Publish() {
  const News news = std::exchange(news_, {});
  if (!news.empty()) Publish(news);
  // Also to who has no news, however often something changes for others.
  const auto now = std::chrono::steady_clock::now();
  if (news.empty() || now >= all_are_due_) {
    Publish({});
    all_are_due_ = now + Pause();
  }
  const bool is_watched =
      std::any_of(publishers_.begin(), publishers_.end(),
                  [](const Publisher* publisher) { return publisher->is_watched(); });
  if (!is_watched) {
    runs_ = false;
    news_.clear();
    timer_.cancel();
  } else if (news_.empty()) {
    PublishAfter(Pause());
  }
}

}  // namespace muster::rendezvous

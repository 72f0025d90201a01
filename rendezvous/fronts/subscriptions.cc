#include "rendezvous/fronts/subscriptions.h"

#include <algorithm>
#include <variant>

#include "rendezvous/core/values/progress.h"

namespace muster::rendezvous {
namespace {

constexpr std::chrono::milliseconds kStepPause(1000);
constexpr std::size_t kBytesInASecond = 64 << 10;

TimePoint LogTime() {
  return std::chrono::steady_clock::now();
}

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

void ChangeFeed::End() {
  runs_ = false;
  news_.clear();
  timer_.Cancel();
}

std::size_t ChangeFeed::PendingEnds(const std::string& tenant) const {
  const auto news = news_.find(tenant);
  return news == news_.end() ? 0 : news->second.ended.size();
}

void ChangeFeed::PublishAfter(std::chrono::milliseconds pause) {
  runs_ = true;
  timer_.After(pause, [this] { Publish(); });
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
    End();
  } else if (news_.empty()) {
    PublishAfter(Pause());
  }
}

LogReaderId LogExchange::OpenReader(LogRequest request, Reader reader) {
  const LogReaderId id = next_reader_++;
  readers_.emplace(id, std::move(reader));
  core_.logs().Open(id, std::move(request), LogTime());
  follow_();
  return id;
}

void LogExchange::Took(LogReaderId reader) {
  core_.logs().Ready(reader, LogTime());
  follow_();
}

void LogExchange::CloseReader(LogReaderId reader) {
  readers_.erase(reader);
  core_.logs().Close(reader);
  follow_();
}

bool LogExchange::OpenDelivery(LogDeliveryId delivery, Source source) {
  if (!core_.logs().OpenDelivery(delivery)) return false;
  sources_.emplace(delivery, std::move(source));
  follow_();
  return true;
}

void LogExchange::Brought(LogDeliveryId delivery, LogPart part) {
  core_.logs().Brought(delivery, std::move(part), LogTime());
  follow_();
}

void LogExchange::Ended(LogDeliveryId delivery, const absl::Status& status) {
  sources_.erase(delivery);
  core_.logs().Ended(delivery, status, LogTime());
  follow_();
}

// Each takes a copy, as whoever is called may end itself.
void LogExchange::Do(GiveLogPart&& give) {
  const auto reader = readers_.find(give.reader);
  if (reader == readers_.end()) return;
  const auto on_part = reader->second.on_part;
  on_part(std::move(give.part));
}

void LogExchange::Do(EndLogReader&& end) {
  auto reader = readers_.extract(end.reader);
  if (!reader.empty()) reader.mapped().on_end(end.status);
}

void LogExchange::Do(ReadLogDelivery&& read) {
  const auto source = sources_.find(read.delivery);
  if (source == sources_.end()) return;
  const auto call = source->second.read;
  call();
}

void LogExchange::Do(EndLogDelivery&& end) {
  auto source = sources_.extract(end.delivery);
  if (!source.empty()) source.mapped().end();
}

}  // namespace muster::rendezvous

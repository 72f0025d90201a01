#include "rendezvous/etcd/journal_mirror.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <variant>

#include "absl/strings/match.h"

namespace muster::rendezvous::etcd {
namespace {

// In one turn of the loop, which keeps the lease alive meanwhile: some ten milliseconds, for many
// small keys as for few large ones.
constexpr std::size_t kBytesInATurn = 8 << 20;
constexpr std::size_t kKeysInATurn = 10'000;

// Before all is read anew where that has failed; twice as long each time.
constexpr std::chrono::milliseconds kFirstMirrorPause = std::chrono::seconds(1);
constexpr std::chrono::milliseconds kLongestMirrorPause = std::chrono::minutes(1);

}  // namespace

void MemorySource::Look(std::vector<std::string> keys,
                        std::function<void(absl::StatusOr<Values>)> done) {
  Values values;
  for (const std::string& key : keys) {
    const auto found = keys_.find(key);
    values.push_back(found == keys_.end() ? std::nullopt : std::optional(found->second));
  }
  done(std::move(values));
}

void MemorySource::HandOver(Range range, std::function<absl::Status(const KeyValue&)> take,
                            std::function<void(absl::Status)> done) {
  std::size_t bytes = 0;
  std::size_t keys = 0;
  for (auto next = keys_.lower_bound(range.key); next != keys_.end() && next->first < range.end;) {
    if (bytes > kBytesInATurn || keys == kKeysInATurn) {
      return later_(lifetime_.Guard([this, range = std::move(range), take = std::move(take),
                                     done = std::move(done)] { HandOver(range, take, done); }));
    }
    Keys::node_type node = keys_.extract(next++);
    KeyValue key{.key = std::move(node.key()), .value = std::move(node.mapped())};
    ++keys;
    bytes += key.key.size() + key.value.size();
    if (absl::Status status = take(key); !status.ok()) return done(std::move(status));
  }
  done(absl::OkStatus());
}

void MemorySource::Expect(const std::vector<Operation>& operations) {
  for (const Operation& operation : operations) {
    if (const auto* put = std::get_if<Put>(&operation)) {
      keys_[put->key] = put->value;
    } else if (const auto* gone = std::get_if<Delete>(&operation)) {
      const auto first = keys_.lower_bound(gone->key);
      keys_.erase(first, keys_.lower_bound(gone->end.empty() ? gone->key + '\0' : gone->end));
    }
  }
}

JournalMirror::JournalMirror(Etcd& etcd, std::unique_ptr<Alarm> alarm, const std::string& root,
                             MemorySource::Later later, Handlers handlers)
    : etcd_(etcd),
      range_(JournalKeys(root).Everything()),
      later_(std::move(later)),
      handlers_(std::move(handlers)),
      alarm_(std::move(alarm)),
      pages_(etcd, [this] { return alarm_->Now(); }),
      pause_(kFirstMirrorPause, kLongestMirrorPause) {}

JournalMirror::~JournalMirror() {
  etcd_.EndWatch();
}

void JournalMirror::Follow() {
  if (state_ == State::kIdle || state_ == State::kPausing) Read();
}

void JournalMirror::Read() {
  state_ = State::kReading;
  alarm_->Set(std::nullopt, {});
  ++reading_;
  page_size_ = std::make_shared<PageSize>();
  unread_ = range_.key;
  early_.clear();
  watched_ = 0;
  keys_.clear();
  ReadPage();
}

void JournalMirror::ReadPage() {
  pages_.Read({}, {unread_, range_.end}, page_size_,
              lifetime_.Guard([this, reading = reading_](const absl::StatusOr<Outcome>& page) {
                if (state_ != State::kReading || reading != reading_) return;
                if (!page.ok()) return Fail(page.status());
                if (page->found.empty()) return Fail(absl::InternalError("etcd has answered less"));
                OnPage(*page);
              }));
}

void JournalMirror::OnPage(const Outcome& page) {
  const bool is_first = watched_ == 0;
  const Outcome::Found& found = page.found[0];
  for (const KeyValue& key : found.keys) keys_[key.key] = key.value;
  const bool more = found.more && !found.keys.empty();
  unread_ = more ? found.keys.back().key + '\0' : range_.end;
  for (Change& change : std::exchange(early_, {})) {
    if (change.revision > page.revision) Make(std::move(change));
  }
  if (is_first) {
    watched_ = page.revision;
    WatchAfter(page.revision);
  }
  if (more) return ReadPage();
  state_ = State::kFollowing;
  pause_.Reset();
  trouble_.Over();
  std::size_t bytes = 0;
  for (const auto& [key, value] : keys_) bytes += key.size() + value.size();
  handlers_.follows(bytes);
}

void JournalMirror::WatchAfter(Revision revision) {
  etcd_.Watch(range_, revision, lifetime_.Guard([this](std::vector<Change> changes) {
    OnChanges(std::move(changes));
  }),
              lifetime_.Guard([this](const absl::Status& why) { OnWatchEnded(why); }));
}

void JournalMirror::OnChanges(std::vector<Change> changes) {
  for (Change& change : changes) {
    if (!Follows(change)) {
      etcd_.EndWatch();
      Read();
      break;
    }
    watched_ = change.revision;
    Make(std::move(change));
  }
  Judge();
}

// Of what is read at the time, a page may be newer than the watch.
bool JournalMirror::Follows(const Change& change) const {
  if (state_ != State::kFollowing || !change.value) return true;
  if (!absl::EndsWith(change.key, kSequenceName)) return true;
  const auto known = keys_.find(change.key);
  return IsNext(known == keys_.end() ? "" : known->second, *change.value);
}

void JournalMirror::Make(Change change) {
  if (change.key >= unread_) {
    early_.push_back(std::move(change));
  } else if (change.value) {
    keys_[std::move(change.key)] = *std::move(change.value);
  } else {
    keys_.erase(change.key);
  }
}

void JournalMirror::OnWatchEnded(const absl::Status& why) {
  // From the revision on that was told last, which may not have been told whole.
  if (absl::IsUnavailable(why)) return WatchAfter(watched_ - 1);
  if (!absl::IsOutOfRange(why)) return Fail(why);
  Read();
  Judge();
}

void JournalMirror::Fail(const absl::Status& why) {
  etcd_.EndWatch();
  state_ = State::kPausing;
  ++reading_;
  early_.clear();
  keys_.clear();
  alarm_->Set(alarm_->Now() + pause_.Next(), [this] { Follow(); });
  if (trouble_.IsDue(alarm_->Now())) handlers_.trouble(why);
  Judge();
}

void JournalMirror::TakeOver(const Fence& fence,
                             std::function<void(std::unique_ptr<MemorySource>)> done) {
  leads_since_ = fence.created;
  done_ = std::move(done);
  Judge();
}

void JournalMirror::StopWaiting() {
  if (done_) Give(nullptr);
}

void JournalMirror::Judge() {
  if (!done_) return;
  if (state_ != State::kFollowing) return Give(nullptr);
  if (watched_ < leads_since_) return;
  Give(std::make_unique<MemorySource>(std::move(keys_), later_));
}

void JournalMirror::Give(std::unique_ptr<MemorySource> memory) {
  etcd_.EndWatch();
  alarm_->Set(std::nullopt, {});
  state_ = State::kOver;
  early_.clear();
  keys_.clear();
  std::exchange(done_, nullptr)(std::move(memory));
}

}  // namespace muster::rendezvous::etcd

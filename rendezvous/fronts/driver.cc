#include "rendezvous/fronts/driver.h"

#include <boost/asio/post.hpp>

namespace muster::rendezvous {

Driver::Driver(boost::asio::io_context& io, Watcher watcher, const Coordinator::Options& options)
    : io_(io), watcher_(std::move(watcher)), coordinator_(options), timer_(io) {}

void Driver::UseJournal(Journal& journal, std::function<void(const absl::Status&)> on_fatal) {
  journal_ = std::make_unique<JournalWriter>(io_, coordinator_, journal);
  on_fatal_ = std::move(on_fatal);
  // What was restored may have forgotten jobs.
  Follow();
}

void Driver::Restore(const JobRecord& job) {
  coordinator_.Restore(job, Now());
}

void Driver::RestoreEntry(std::string_view run_id, std::string_view key, std::string_view value) {
  KeyValueStore* const store = coordinator_.FindStore(run_id);
  if (store != nullptr) store->Set(key, value).IgnoreError();
}

AgentId Driver::Attach(Sink sink) {
  const AgentId agent = next_agent_++;
  sinks_.emplace(agent, std::move(sink));
  return agent;
}

void Driver::Detach(AgentId agent) {
  sinks_.erase(agent);
}

void Driver::Hear(AgentId agent, const Event& event) {
  Handle([&] { coordinator_.Hear(agent, event, Now()); });
}

void Driver::Disconnected(AgentId agent, const std::string& why) {
  Handle([&] { coordinator_.Disconnected(agent, why, Now()); });
}

void Driver::AgentDied(const SessionToken& session) {
  Handle([&] { coordinator_.AgentDied(session, Now()); });
}

void Driver::Drain(const std::string& why) {
  Handle([&] { coordinator_.Drain(why); });
}

void Driver::Close(const std::string& why) {
  Handle([&] { coordinator_.Close(why, Now()); });
}

void Driver::WhenIdle(std::function<void()> done) {
  when_idle_.push_back(std::move(done));
  Follow();
}

std::optional<JobSnapshot> Driver::Describe(std::string_view run_id) const {
  return coordinator_.Describe(run_id, Now());
}

std::vector<JobSnapshot> Driver::List() const {
  return coordinator_.List(Now());
}

TimePoint Driver::Now() {
  return std::chrono::steady_clock::now();
}

KeyValueStore* Driver::FindStore(std::string_view run_id) {
  KeyValueStore* const store = coordinator_.FindStore(run_id);
  if (store != nullptr && journal_ != nullptr) store->TrackChanges();
  return store;
}

void Driver::StoreChanged(std::string_view run_id) {
  KeyValueStore* const store = coordinator_.FindStore(run_id);
  if (store == nullptr || journal_ == nullptr) return;
  std::vector<std::string> keys = store->TakeChangedKeys();
  if (keys.empty()) return;
  journal_->StoreChanged(std::string(run_id), std::move(keys));
  gate_.Change();
  CommitSoon();
}

void Driver::WhenDurable(std::function<void()> tell) {
  gate_.Put(std::move(tell));
  Deliver();
}

absl::Status Driver::MayWrite() const {
  if (journal_ == nullptr || !journal_->full()) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      "the daemon's disk is full, and nothing can be written until there is space");
}

template <typename Call>
void Driver::Handle(const Call& call) {
  if (frozen_) return;
  call();
  Follow();
}

void Driver::Freeze() {
  frozen_ = true;
  timer_.cancel();
}

void Driver::Follow() {
  TakeOutbox();
  Deliver();
  CommitSoon();
  ArmTimer();
  if (coordinator_.idle()) {
    for (std::function<void()>& done : std::exchange(when_idle_, {})) {
      WhenDurable([this, done = std::move(done)] { boost::asio::post(io_, done); });
    }
  }
}

void Driver::TakeOutbox() {
  Outbox outbox = coordinator_.TakeOutbox();
  if (journal_ != nullptr) {
    for (const Transition& transition : outbox.transitions) {
      journal_->JobChanged(transition.run_id);
    }
    for (const std::string& run_id : outbox.forgotten_jobs) journal_->JobForgotten(run_id);
    if (!outbox.transitions.empty() || !outbox.forgotten_jobs.empty()) gate_.Change();
  }
  if (watcher_) {
    for (const Transition& transition : outbox.transitions) watcher_(transition);
  }
  if (on_forgotten_) {
    for (const std::string& run_id : outbox.forgotten_jobs) on_forgotten_(run_id);
  }
  for (Outgoing& outgoing : outbox.directives) {
    if (std::holds_alternative<Heard>(outgoing.directive)) {
      Tell(outgoing);
    } else {
      gate_.Put(std::move(outgoing));
    }
  }
}

void Driver::Deliver() {
  // A sink that called us is on the stack below: its loop goes on with what was added.
  if (delivering_) return;
  delivering_ = true;
  while (const std::optional<Telling> telling = gate_.Take()) {
    if (const auto* outgoing = std::get_if<Outgoing>(&*telling)) {
      Tell(*outgoing);
    } else {
      std::get<std::function<void()>> (*telling)();
    }
  }
  delivering_ = false;
}

void Driver::Tell(const Outgoing& outgoing) {
  const auto sink = sinks_.find(outgoing.to);
  if (sink == sinks_.end()) return;
  // A copy, as the sink may detach itself.
  const Sink call = sink->second;
  call(outgoing.directive);
}

// After what else is due in this turn of the loop, so that one commit holds it all.
void Driver::CommitSoon() {
  if (journal_ == nullptr || !gate_.NeedsCommit() || std::exchange(commit_posted_, true)) return;
  boost::asio::post(io_, [this, alive = std::weak_ptr<void>(alive_)] {
    if (!alive.expired()) Commit();
  });
}

void Driver::Commit() {
  commit_posted_ = false;
  if (frozen_) return;
  gate_.Begin();
  journal_->Commit([this](const absl::Status& status) {
    if (!status.ok()) return on_fatal_(status);
    gate_.Committed();
    if (frozen_) return;
    Deliver();
    CommitSoon();
  });
}

void Driver::ArmTimer() {
  const std::optional<TimePoint> due = coordinator_.NextDeadline();
  if (due == timer_due_) return;
  timer_due_ = due;
  timer_.cancel();
  if (!due) return;
  timer_.expires_at(*due);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    timer_due_.reset();
    Handle([&] { coordinator_.Tick(Now()); });
  });
}

}  // namespace muster::rendezvous

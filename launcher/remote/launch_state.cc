#include "launcher/remote/launch_state.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace muster::launcher {
namespace {

constexpr int kSignalBase = 128;

// "2 of 3 nodes".
std::string Of(std::size_t count, std::size_t all) {
  return absl::StrCat(count, " of ", all, all == 1 ? " node" : " nodes");
}

}  // namespace

using enum HostNews::What;

LaunchState::LaunchState(Options options)
    : options_(std::move(options)), hosts_(options_.names.size()), counts_(4) {
  counts_[static_cast<std::size_t>(State::kAwaited)] = hosts_.size();
}

std::size_t LaunchState::Count(State state) const {
  return counts_[static_cast<std::size_t>(state)];
}

LaunchState::Actions LaunchState::On(const HostNews& news) {
  Actions actions;
  if (news.host < 0 || static_cast<std::size_t>(news.host) >= hosts_.size()) return actions;
  Host& host = hosts_[static_cast<std::size_t>(news.host)];
  if (host.state == State::kEnded) return actions;
  const auto become = [&](State state) {
    --counts_[static_cast<std::size_t>(host.state)];
    host.state = state;
    ++counts_[static_cast<std::size_t>(state)];
  };
  switch (news.what) {
    case kAnswered:
      become(State::kUp);
      host.endpoint = news.endpoint;
      MaybeBegin(actions);
      break;
    case kNotYet:
      break;
    case kUnreachable:
      become(State::kUnreachable);
      OnUnreachable(news, actions);
      break;
    case kLost: {
      const bool was_up = host.state == State::kUp;
      become(State::kAwaited);
      if (!was_up || failed_) break;
      if (serving_ != news.host) {
        actions.emplace_back(Say{absl::StrCat(Name(news.host), " was lost: ", news.reason)});
        break;
      }
      failed_ = true;
      actions.emplace_back(Fail{absl::StrCat(
          Name(news.host), ", where the rendezvous was served, was lost: ", news.reason)});
      break;
    }
    case kEnded:
      become(State::kEnded);
      host.exit_code = news.exit_code;
      OnEnded(news, actions);
      break;
  }
  if (begun_ && Count(State::kUp) == 0 && Count(State::kEnded) > 0) {
    actions.emplace_back(Finish{});
  }
  return actions;
}

void LaunchState::OnUnreachable(const HostNews& news, Actions& actions) {
  if (failed_) return;
  const std::string sentence = absl::StrCat(Name(news.host), " cannot be reached: ", news.reason);
  if (hosts_.size() - Count(State::kUnreachable) >= static_cast<std::size_t>(options_.min_nodes)) {
    actions.emplace_back(Say{sentence});
    return MaybeBegin(actions);
  }
  failed_ = true;
  actions.emplace_back(Fail{sentence});
}

void LaunchState::MaybeBegin(Actions& actions) {
  if (begun_ || failed_) return;
  if (!options_.serves_rendezvous) {
    begun_ = true;
    actions.emplace_back(Begin{});
    return;
  }
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].state == State::kUnreachable) continue;
    // This is the first host that is not given up; until it answers, the others wait.
    if (hosts_[i].state != State::kUp) return;
    begun_ = true;
    serving_ = static_cast<HostIndex>(i);
    actions.emplace_back(Begin{hosts_[i].endpoint});
    return;
  }
}

void LaunchState::OnEnded(const HostNews& news, Actions& actions) {
  if (news.exit_code != 0 && !first_failed_) first_failed_ = news.host;
  const std::size_t left = hosts_.size() - Count(State::kEnded) - Count(State::kUnreachable);
  if (news.exit_code == 0 || expects_end_ || left == 0 ||
      left >= static_cast<std::size_t>(options_.min_nodes)) {
    return;
  }
  expects_end_ = true;
  actions.emplace_back(ExpectEnd{
      absl::StrCat("the node on ", Name(news.host),
                   news.exit_code > kSignalBase
                       ? absl::StrCat(" was killed by signal ", news.exit_code - kSignalBase)
                       : absl::StrCat(" ended with exit code ", news.exit_code),
                   ", and the job cannot go on with ", Of(left, hosts_.size()))});
}

HostIndex LaunchState::deciding_host() const {
  if (serving_) {
    const Host& host = hosts_[static_cast<std::size_t>(*serving_)];
    if (host.state == State::kEnded && host.exit_code != 0) return *serving_;
  }
  return first_failed_.value_or(serving_.value_or(0));
}

int LaunchState::exit_code() const {
  return hosts_[static_cast<std::size_t>(deciding_host())].exit_code;
}

}  // namespace muster::launcher

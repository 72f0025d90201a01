// When what is remembered of a tenant is opened.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/lifetime.h"

namespace muster::rendezvous {

// Many at a time, as a journal in etcd takes several transactions and each of those its time; but
// not more than etcd and the memory bear when tenants come by the hundred. One for each tenant,
// however many calls ask for him. One that could not be opened is not tried again for a while, as
// calls may come by the hundred, too, and an agent asks for as long as it lives: each try may read
// all that there is, and what one tenant has must not keep the others waiting. So the while is
// twice as long each time that he fails in a row, up to a limit.
//
// Lives on the loop's thread.
class TenantOpenings {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Options {
    std::size_t at_once = 32;
    std::chrono::milliseconds after_failure = std::chrono::seconds(2);  // the first
    std::chrono::milliseconds at_most = std::chrono::minutes(1);
    std::function<TimePoint()> now = std::chrono::steady_clock::now;
  };
  // Opens it and then calls `opened` once, before it returns or later from the loop.
  using Open = std::function<void(const std::string& tenant,
                                  std::function<void(const absl::Status&)> opened)>;

  TenantOpenings(Options options, Open open)
      : options_(std::move(options)), open_(std::move(open)) {}

  // OK when it is open by now; else why it is not: Unavailable while it is being opened, or waits
  // for its turn, or that with which it has failed.
  absl::Status Ask(const std::string& tenant);

  // Calls `over` when the opening that is under way is over, however it ends. False: there is none.
  bool Await(const std::string& tenant, std::function<void()> over);

  // Whether this sentence, why he cannot be opened, is not what it was the last time; to be asked
  // before that try is over.
  bool IsNews(const std::string& tenant, const std::string& why);

 private:
  // Of one that could not be opened, until he is.
  struct Failure {
    absl::Status why;
    std::chrono::milliseconds pause{};
    TimePoint until{};
    std::string said{};
  };

  void Next();
  void End(const std::string& tenant, const absl::Status& status);

  const Options options_;
  const Open open_;
  // Of each that is not open yet: who waits for that.
  std::map<std::string, std::vector<std::function<void()>>> awaited_;
  std::deque<std::string> waiting_;
  std::size_t under_way_ = 0;
  std::map<std::string, Failure> failures_;
  const base::Lifetime lifetime_;
};

}  // namespace muster::rendezvous

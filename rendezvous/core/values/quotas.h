// What is counted against limits: memory shared by several stores, rates, calls, and refusals.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "base/check.h"
#include "rendezvous/core/values/limits.h"
#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

// How many bytes there are in all, and how many are taken. Must outlive its shares. Not
// thread-safe.
class ByteBudget {
 public:
  // Bytes taken here are also taken from `whole`, unless it is null.
  explicit ByteBudget(std::size_t most, ByteBudget* whole = nullptr) : most_(most), whole_(whole) {}
  ByteBudget(const ByteBudget&) = delete;
  ByteBudget& operator=(const ByteBudget&) = delete;

  std::size_t most() const { return most_; }
  std::size_t taken() const { return taken_; }

  // The bytes one store has taken; returned when the share is destroyed. Counts nothing without a
  // budget.
  class Share {
   public:
    explicit Share(ByteBudget* budget) : budget_(budget) {}
    ~Share() { Take(0); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // The store uses `bytes` from now on.
    void Take(std::size_t bytes) {
      const std::size_t before = std::exchange(bytes_, bytes);
      for (ByteBudget* each = budget_; each != nullptr; each = each->whole_) {
        MUSTER_CHECK(each->taken_ >= before);
        each->taken_ += bytes - before;
      }
    }
    // The budget that would be exceeded if this store grew to `bytes`; null: none.
    const ByteBudget* ExceededBy(std::size_t bytes) const {
      if (bytes <= bytes_) return nullptr;
      for (const ByteBudget* each = budget_; each != nullptr; each = each->whole_) {
        if (each->taken_ - bytes_ + bytes > each->most_) return each;
      }
      return nullptr;
    }
    std::size_t bytes() const { return bytes_; }

   private:
    ByteBudget* const budget_;
    std::size_t bytes_ = 0;
  };

 private:
  const std::size_t most_;
  ByteBudget* const whole_;
  std::size_t taken_ = 0;
};

// Limits the rate of a repeated action. A rate per second, and a burst after a rest. (The generic
// cell rate algorithm of ITU-T I.371, appendix A.)
class TokenBucket {
 public:
  TokenBucket(int in_a_second, int at_once)
      : interval_(Duration(std::chrono::seconds(1)) / in_a_second),
        ahead_(interval_ * (at_once - 1)) {}

  // Counts one action. Returns the earliest time for the next; not after `now` if it may follow at
  // once.
  TimePoint Next(TimePoint now) {
    due_ = std::max(due_, now) + interval_;
    return due_ - ahead_;
  }

 private:
  const Duration interval_, ahead_;
  TimePoint due_{};
};

// Counts calls in progress: per connection, per tenant, and in all. Not thread-safe; the caller
// synchronizes.
class CallCounts {
 public:
  // A connection's number; never reused.
  using Connection = std::uint64_t;

  struct Limits {
    std::size_t of_connection = 0;
    // Calls refused for exceeding it before the connection is a flood. Default: never.
    std::uint64_t refused_of_connection = std::numeric_limits<std::uint64_t>::max();
    std::size_t of_tenant = 0;
    std::size_t of_all = 0;
  };

  explicit CallCounts(const Limits& limits) : limits_(limits) {}

  enum class Verdict {
    kBegun,
    kRefused,  // over a limit; counted only as refused
    kFlood,    // refused as well, and the connection should be closed; returned once while it has
               // calls
  };

  // A call of that tenant begins. A single-user daemon passes an empty name, limited only by
  // `of_all`.
  Verdict Begin(Connection connection, const std::string& tenant, TimePoint now);
  // A counted call has ended.
  void End(Connection connection);
  // The same, but the call counts until `then`; `then` must not decrease from call to call.
  void EndAt(Connection connection, TimePoint then) { lingering_.emplace_back(then, connection); }
  // Drops the calls whose time has come; Begin does so, too.
  void Settle(TimePoint now);

  // Sets the address, any text, of a connection with calls in progress. Returns whether it is a
  // flood.
  bool ComesFrom(Connection connection, const std::string& peer);
  // Empty: unknown.
  std::string PeerOf(Connection connection) const;

  // Calls refused on this connection since the last call of this. Refusals on a connection without
  // calls in progress are forgotten.
  std::uint64_t TakeRefused(Connection connection);

  std::size_t under_way() const { return under_way_; }
  std::size_t under_way(const std::string& tenant) const;
  // Refusals since the start; each counts for one limit.
  struct Refused {
    std::uint64_t of_connection = 0;
    std::uint64_t of_tenant = 0;
    std::uint64_t of_all = 0;
  };
  const Refused& refused_by_limit() const { return refused_; }
  std::uint64_t refused() const {
    return refused_.of_connection + refused_.of_tenant + refused_.of_all;
  }

 private:
  using ByTenant = std::map<std::string, std::size_t>;
  struct Calls {
    std::size_t count = 0;
    std::uint64_t refused = 0;    // not reported yet
    std::uint64_t own_limit = 0;  // all refusals for its own limit
    std::string peer;
    ByTenant::iterator tenant;
  };

  const Limits limits_;
  // Only connections with calls in progress.
  std::map<Connection, Calls> by_connection_;
  ByTenant by_tenant_;
  std::deque<std::pair<TimePoint, Connection>> lingering_;
  std::size_t under_way_ = 0;
  Refused refused_;
};

// How often each limit caused a refusal or a disconnect; and refusals that name their limit. A
// value; only for limits that have a name. Not thread-safe.
class LimitCounts {
 public:
  void Count(const Limit& limit, std::uint64_t refused = 1) { counts_[&limit] += refused; }
  // Counts it if it is such a refusal.
  void Count(const absl::Status& status);

  std::uint64_t of(const Limit& limit) const;

 private:
  std::map<const Limit*, std::uint64_t> counts_;
};

// ResourceExhausted with that sentence, for a caller that would exceed the limit.
absl::Status LimitRefusal(const Limit& limit, absl::string_view sentence);
// The limit behind such a refusal; null: `status` is something else.
const Limit* LimitOf(const absl::Status& status);

}  // namespace muster::rendezvous

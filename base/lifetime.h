// Whether an object still exists: for handlers it has queued, and for calls it is in the middle of.
#pragma once

#include <memory>
#include <utility>

namespace muster::base {

// A member of an object that hands out `this`. A handler that waits in an event loop may be run
// after its object is gone, and a callback may destroy the object that calls it; both check here
// first.
//
//   timer_.async_wait(lifetime_.Guard([this](error_code error) { ... }));   // not called when gone
//
//   const base::Lifetime::Watch watch = lifetime_.watch();
//   callbacks_.on_beat(rank);
//   if (watch.over()) return;   // on_beat has destroyed us
//
// If the object lives and ends on one thread, as all of ours do, the answer is valid until control
// returns to the loop or enters a callback. A Watch may pass through other threads.
class Lifetime {
 public:
  // May outlive the object.
  class Watch {
   public:
    // The object is gone, or has called End().
    bool over() const { return token_.expired(); }

   private:
    friend class Lifetime;
    explicit Watch(const std::shared_ptr<char>& token) : token_(token) {}

    std::weak_ptr<char> token_;
  };

  Lifetime() = default;
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;

  // After End(), the watch is over.
  Watch watch() const { return Watch(token_); }

  // A function that calls `call` as long as this is not over, and does nothing afterwards. Takes
  // the same arguments.
  template <typename Call>
  auto Guard(Call call) const {
    return [watch = watch(), call = std::move(call)](auto&&... arguments) mutable -> void {
      if (!watch.over()) call(std::forward<decltype(arguments)>(arguments)...);
    };
  }

  // From now on guarded calls do nothing, although the object still exists.
  void End() { token_.reset(); }

 private:
  std::shared_ptr<char> token_ = std::make_shared<char>();
};

}  // namespace muster::base

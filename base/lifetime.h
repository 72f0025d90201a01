// Tells queued handlers and running calls whether their object still exists.
#pragma once

#include <memory>
#include <utility>

namespace muster::base {

// A member of an object that hands out `this`. A handler queued in an event loop may run after its
// object is gone, and a callback may destroy the object that calls it; both check here first.
//
//   timer_.async_wait(lifetime_.Guard([this](error_code error) { ... }));   // not called when gone
//
//   const base::Lifetime::Watch watch = lifetime_.watch();
//   callbacks_.on_beat(rank);
//   if (watch.over()) return;   // on_beat has destroyed us
//
// If the object is created and destroyed on one thread, as all of ours are, the answer is valid
// until control returns to the loop or enters a callback. A Watch may be moved between other
// threads.
class Lifetime {
 public:
  // May outlive the object.
  class Watch {
   public:
    // Whether the object is gone or has called End().
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

  // Returns a function that forwards to `call` until the lifetime is over, and then does nothing.
  template <typename Call>
  auto Guard(Call call) const {
    return [watch = watch(), call = std::move(call)](auto&&... arguments) mutable -> void {
      if (!watch.over()) call(std::forward<decltype(arguments)>(arguments)...);
    };
  }

  // Ends the lifetime early: guarded calls do nothing from now on.
  void End() { token_.reset(); }

 private:
  std::shared_ptr<char> token_ = std::make_shared<char>();
};

// An immutable value with many holders.

// Copied as a pointer, compared as a value. Never empty: a default-constructed one holds T's
// default. As thread-safe as a const T.
template <typename T>
class SharedValue {
 public:
  SharedValue() : value_(Default()) {}
  SharedValue(T value) : value_(std::make_shared<const T>(std::move(value))) {}  // NOLINT: as a T

  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_.get(); }
  operator const T&() const { return *value_; }  // NOLINT: implicit to T

  bool operator==(const SharedValue& other) const {
    return value_ == other.value_ || *value_ == *other.value_;
  }

 private:
  static const std::shared_ptr<const T>& Default() {
    static const auto* const kDefault = new std::shared_ptr<const T>(std::make_shared<const T>());
    return *kDefault;
  }

  std::shared_ptr<const T> value_;
};

}  // namespace muster::base

// A value that many hold and nobody changes.
#pragma once

#include <memory>
#include <utility>

namespace muster::base {

// Copied as a pointer, compared as a value. Never empty: one that was given no value has T's
// default. As thread-safe as a const T.
template <typename T>
class SharedValue {
 public:
  SharedValue() : value_(Default()) {}
  SharedValue(T value) : value_(std::make_shared<const T>(std::move(value))) {}  // NOLINT: as a T

  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_.get(); }
  operator const T&() const { return *value_; }  // NOLINT: wherever a T is taken

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

#include "trainer/runtime/failure.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <typeinfo>

#include <c10/util/Exception.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster::trainer {
namespace {

// The keys of the payloads.
constexpr char kStack[] = "muster/stack";
constexpr char kTimeToTell[] = "muster/time_to_tell";  // in milliseconds

std::string Demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 ? text.get() : name;
}

// The stack in a c10::Error, after its own message. Found by its text, because the accessor's type
// differs between versions of LibTorch.
std::string CarriedStack(const std::exception& error) {
  const std::string text = error.what();
  // "Exception raised from FUNCTION at FILE (most recent call first):"
  const std::size_t at = text.find("Exception raised from ");
  return at == std::string::npos ? "" : text.substr(at);
}

}  // namespace

absl::Status FailureOf(const std::string& attempt, const std::exception& error) {
  const std::string sentence = absl::StrCat(attempt, attempt.empty() ? "" : ": ", OneLine(error));
  const bool users = dynamic_cast<const std::invalid_argument*>(&error) != nullptr;
  absl::Status status(users ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kUnavailable,
                      sentence);
  const std::string carried = CarriedStack(error);
  status.SetPayload(kStack, absl::Cord(carried.empty() ? CurrentStack() : carried));
  return status;
}

absl::Status FailureNow(const std::string& attempt) {
  try {
    throw;
  } catch (const std::exception& error) {
    return FailureOf(attempt, error);
  } catch (...) {
    const std::type_info* const type = abi::__cxa_current_exception_type();
    return FailureOf(attempt, std::runtime_error(absl::StrCat(
                                  "something of type ", type ? Demangled(type->name()) : "unknown",
                                  " was thrown, which is not a std::exception")));
  }
}

std::string StackOf(const absl::Status& status) {
  const auto stack = status.GetPayload(kStack);
  return stack ? std::string(*stack) : "";
}

absl::Status BeforeJoining(absl::Status status, std::chrono::milliseconds timeout) {
  status.SetPayload(kTimeToTell, absl::Cord(absl::StrCat(timeout.count())));
  return status;
}

std::optional<std::chrono::milliseconds> TimeToTell(const absl::Status& status) {
  const auto payload = status.GetPayload(kTimeToTell);
  std::int64_t milliseconds = 0;
  if (!payload || !absl::SimpleAtoi(std::string(*payload), &milliseconds)) return std::nullopt;
  return std::chrono::milliseconds(milliseconds);
}

std::string CurrentStack() {
  std::array<void*, 64> frames;
  const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  std::string stack;
  for (int i = 1; i < count; ++i) {  // 0 is this function
    void* frame = frames[static_cast<std::size_t>(i)];
    Dl_info info = {};
    if (dladdr(frame, &info) == 0) {
      absl::StrAppend(&stack, "#", i - 1, " ?\n");
      continue;
    }
    const auto offset =
        reinterpret_cast<std::uintptr_t>(frame) - reinterpret_cast<std::uintptr_t>(info.dli_fbase);
    absl::StrAppend(&stack, "#", i - 1, " ",
                    info.dli_sname != nullptr ? Demangled(info.dli_sname) : "?", " (",
                    info.dli_fname, "+0x", absl::Hex(offset), ")\n");
  }
  return stack;
}

std::string OneLine(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  const std::string text = torch_error ? torch_error->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}

}  // namespace muster::trainer

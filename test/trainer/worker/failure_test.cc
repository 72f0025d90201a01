#include "trainer/runtime/failure.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace muster::trainer {
namespace {

TEST(FailureTest, ALibTorchErrorKeepsTheStackItWasThrownWith) {
  try {
    TORCH_CHECK(false, "no such axis");
  } catch (const std::exception& error) {
    const absl::Status status = FailureOf("train", error);
    EXPECT_EQ(status.message(), "train: no such axis");
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(StackOf(status).rfind("Exception raised from ", 0), 0u) << StackOf(status);
  }
}

TEST(FailureTest, AnyOtherErrorHasTheStackOfWhoCaughtIt) {
  const absl::Status status = FailureOf("", std::runtime_error("peer is gone\nand more"));
  EXPECT_EQ(status.message(), "peer is gone");
  EXPECT_EQ(StackOf(status).rfind("#0 ", 0), 0u) << StackOf(status);
  EXPECT_NE(StackOf(status).find("worker_torch_test"), std::string::npos) << StackOf(status);
}

// "terminate called after throwing an instance of 'int'".
TEST(FailureTest, WhateverIsThrownIsASentence) {
  try {
    throw 42;
  } catch (...) {
    const absl::Status status = FailureNow("train");
    EXPECT_EQ(status.message(),
              "train: something of type int was thrown, which is not a std::exception");
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  }
  try {
    throw std::invalid_argument("set the flag");
  } catch (...) {
    const absl::Status status = FailureNow("");
    EXPECT_EQ(status.message(), "set the flag");
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(FailureTest, AnInvalidArgumentIsTheUsersToMend) {
  EXPECT_EQ(FailureOf("", std::invalid_argument("set the flag")).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(FailureTest, AStatusOfItsOwnHasNoStack) {
  EXPECT_EQ(StackOf(absl::UnavailableError("disk full")), "");
}

}  // namespace
}  // namespace muster::trainer

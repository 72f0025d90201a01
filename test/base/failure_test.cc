#include "base/failure.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace muster::base {
namespace {

TEST(FailureTest, SentenceHasAttemptObjectAndCause) {
  EXPECT_EQ(Failure(absl::StatusCode::kInternal, "open", "/x", "it is no file"),
            absl::InternalError("open /x: it is no file"));
}

TEST(FailureTest, WhereThereIsNoObjectTheAttemptSaysItAll) {
  EXPECT_EQ(Failure(absl::StatusCode::kUnavailable, "fork", "", "no memory"),
            absl::UnavailableError("fork: no memory"));
}

TEST(FailureTest, SystemSaysTheCause) {
  errno = EACCES;
  EXPECT_EQ(SystemFailure(absl::StatusCode::kFailedPrecondition, "open log file", "/x"),
            absl::FailedPreconditionError("open log file /x: Permission denied"));
  EXPECT_EQ(SystemFailure(absl::StatusCode::kNotFound, "read", "/y", ENOENT),
            absl::NotFoundError("read /y: No such file or directory"));
}

TEST(FailureTest, OpenThatFollowsNoLinkNamesTheLink) {
  EXPECT_EQ(OpenCause(ELOOP), "it is a symbolic link");
  EXPECT_EQ(OpenCause(ENOENT), "No such file or directory");
}

}  // namespace
}  // namespace muster::base

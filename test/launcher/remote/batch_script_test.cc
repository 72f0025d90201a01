// Scripts for sbatch.
#include "launcher/cli/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

using testing::HasSubstr;

TEST(BatchScriptTest, FlagsBecomeLinesAndTheJobIsStartedOncePerNode) {
  const auto script = BatchScript({"--nodes=4", "-t", "1-0", "--comment=a \"b\""}, "/opt/muster",
                                  {"--max-restarts=3", "train.py", "--name", "it's"});
  ASSERT_TRUE(script.ok());
  EXPECT_EQ(
      *script,
      "#!/bin/sh\n"
      "#SBATCH --nodes=4\n"
      "#SBATCH -t 1-0\n"
      "#SBATCH \"--comment=a \\\"b\\\"\"\n"
      "exec srun --ntasks-per-node=1 '/opt/muster' run '--max-restarts=3' 'train.py' '--name' "
      "'it'\\''s'\n");
}

TEST(BatchScriptTest, WhatIsNoFlagIsRefused) {
  EXPECT_THAT(std::string(BatchScript({"train.sh"}, "muster", {"x"}).status().message()),
              HasSubstr("'train.sh' is not one of sbatch's flags"));
  EXPECT_THAT(std::string(BatchScript({"--comment=a\nrm"}, "muster", {"x"}).status().message()),
              HasSubstr("line break"));
}

}  // namespace
}  // namespace muster::launcher

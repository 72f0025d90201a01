// What Slurm's variables say of where this process is.
#include "launcher/cli/slurm.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// As srun of Slurm 22.05 gives them.
const Environment kPlacedStep = {{"SLURM_JOB_ID", "1234"},
                                 {"SLURM_STEP_ID", "0"},
                                 {"SLURM_JOB_NODELIST", "gpu[01-08]"},
                                 {"SLURM_STEP_NODELIST", "gpu[03-04,07],login1"},
                                 {"SLURM_STEP_TASKS_PER_NODE", "1(x4)"},
                                 {"SLURMD_NODENAME", "gpu03"},
                                 {"SLURM_GPUS_ON_NODE", "8"}};

SlurmPlace Found(const Environment& environment) {
  const auto place = FindSlurmPlace(environment);
  EXPECT_TRUE(place.ok() && place->has_value()) << place.status();
  return place.ok() && place->has_value() ? **place : SlurmPlace();
}

Environment WithPlace(Environment environment, const std::string& name, const std::string& value) {
  environment[name] = value;
  return environment;
}

TEST(SlurmPlaceTest, AStepHasItsOwnHostsNotAllOfTheJob) {
  const SlurmPlace place = Found(kPlacedStep);
  EXPECT_TRUE(place.is_step);
  EXPECT_TRUE(place.is_on_host);
  EXPECT_THAT(place.hosts, ElementsAre("gpu03", "gpu04", "gpu07", "login1"));
  EXPECT_EQ(place.name, "1234.0");
  EXPECT_EQ(place.gpus, 8);
  EXPECT_EQ(place.tasks_of_host, 1);
}

TEST(SlurmPlaceTest, TheMostProcessesOfAHostCount) {
  EXPECT_EQ(Found(WithPlace(kPlacedStep, "SLURM_STEP_TASKS_PER_NODE", "2(x3),1")).tasks_of_host, 2);
  EXPECT_EQ(Found(WithPlace(kPlacedStep, "SLURM_STEP_TASKS_PER_NODE", "1,16")).tasks_of_host, 16);
}

TEST(SlurmPlaceTest, ARequeuedJobHasAnotherName) {
  EXPECT_EQ(Found(WithPlace(kPlacedStep, "SLURM_RESTART_COUNT", "2")).name, "1234.0-r2");
  EXPECT_EQ(Found(WithPlace(kPlacedStep, "SLURM_RESTART_COUNT", "0")).name, "1234.0");
}

TEST(SlurmPlaceTest, BatchScriptsAndShellsAreNoSteps) {
  Environment batch = kPlacedStep;
  batch.erase("SLURM_STEP_ID");
  for (const Environment& environment :
       {batch, WithPlace(kPlacedStep, "SLURM_STEP_ID", "4294967290"),
        WithPlace(kPlacedStep, "SLURM_STEP_ID", "4294967291")}) {
    const SlurmPlace place = Found(environment);
    EXPECT_FALSE(place.is_step);
    EXPECT_EQ(place.hosts.size(), 8u);
    EXPECT_EQ(place.name, "1234");
  }
  batch.erase("SLURMD_NODENAME");
  EXPECT_FALSE(Found(batch).is_on_host) << "salloc on a machine that is not the job's";
}

TEST(SlurmPlaceTest, NothingIsFoundElsewhereOrWhereItIsNotWanted) {
  for (const Environment& environment : {Environment(), Environment{{"SLURM_JOB_ID", "7"}},
                                         WithPlace(kPlacedStep, "MUSTER_SLURM", "0"),
                                         WithPlace(kPlacedStep, "SLURM_HET_SIZE", "2")}) {
    const auto place = FindSlurmPlace(environment);
    ASSERT_TRUE(place.ok());
    EXPECT_FALSE(place->has_value());
  }
}

TEST(SlurmPlaceTest, ListThatMakesNoSenseIsSaid) {
  const auto place = FindSlurmPlace(WithPlace(kPlacedStep, "SLURM_STEP_NODELIST", "gpu[3-1]"));
  EXPECT_THAT(std::string(place.status().message()),
              HasSubstr("Slurm says SLURM_STEP_NODELIST=gpu[3-1], which has a backward range"));
  EXPECT_THAT(std::string(place.status().message()), HasSubstr("MUSTER_SLURM=0"));
}

// "Segmentation fault", and in a batch script a job on one machine instead of three.
TEST(SlurmPlaceTest, ListThatIsCutOffIsSaid) {
  for (const char* list : {"a[1-3", "b,a[1-3", "b,a[1-3,c", ",", "a,,b", "a,"}) {
    EXPECT_FALSE(FindSlurmPlace(WithPlace(kPlacedStep, "SLURM_STEP_NODELIST", list)).ok()) << list;
  }
}

}  // namespace
}  // namespace muster::launcher

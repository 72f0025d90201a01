// Jobs for Kubernetes. The output is compared with testdata/*.yaml as a whole; to renew a file, run
// the test with --test_env=MUSTER_REWRITE=1 --test_output=all, which prints the new text.
#include "launcher/remote/job_manifest.h"

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Printed(const JobSpec& spec) {
  const auto manifest = JobManifest(spec);
  EXPECT_TRUE(manifest.ok()) << manifest.status().message();
  return manifest.value_or("");
}

void ExpectPrinted(const JobSpec& spec, const std::string& file) {
  const std::string printed = Printed(spec);
  if (std::getenv("MUSTER_REWRITE") != nullptr) std::cout << file << ":\n" << printed;
  std::ifstream in("test/launcher/remote/testdata/" + file);
  const std::string expected{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  EXPECT_EQ(printed, expected);
}

TEST(JobManifestTest, FourNodesWithGpus) {
  ExpectPrinted({.name = "train",
                 .image = "registry.example/train:7",
                 .min_nodes = 4,
                 .max_nodes = 4,
                 .gpus = 8,
                 .token = "0f0f\n",
                 .run = {"--max-restarts=3", "train.py", "--lr=0.1"}},
                "four_nodes.yaml");
}

TEST(JobManifestTest, EverythingThatCanBeSaid) {
  ExpectPrinted({.name = "train",
                 .name_space = "team",
                 .cluster_domain = "k8s.example",
                 .image = "train",
                 .min_nodes = 2,
                 .max_nodes = 4,
                 .gpus = 1,
                 .gpu_resource = "amd.com/gpu",
                 .cpu = "7500m",
                 .memory = "60Gi",
                 .variables = {{"NCCL_DEBUG", "INFO"}, {"PRICE", "5$ \"each\""}},
                 .claims = {{"data", "/data"}, {"checkpoints", "/check points"}},
                 .user = 1000,
                 .secret = "my.token",
                 .grace = 120,
                 .wait = 60,
                 .backoff = 0,
                 .run = {"train.py", "--name=$(HOME)"}},
                "everything.yaml");
}

TEST(JobManifestTest, OneNodeNeedsNeitherTokenNorService) {
  ExpectPrinted({.image = "train", .token = "0f0f\n", .run = {"train.py"}}, "one_node.yaml");
}

TEST(JobManifestTest, WhatKubernetesWouldNotTakeIsRefused) {
  const auto refused = [](JobSpec spec) {
    spec.image = spec.image.empty() ? "train" : spec.image;
    return std::string(JobManifest(spec).status().message());
  };
  EXPECT_THAT(refused({.name = "Train"}), HasSubstr("--name=Train is not a valid pod name"));
  EXPECT_EQ(refused({.name = std::string(61, 'a'), .max_nodes = 10}), "");
  EXPECT_THAT(refused({.name = std::string(61, 'a'), .max_nodes = 11}), HasSubstr("--name=aaa"));
  EXPECT_THAT(refused({.name_space = "a.b"}), HasSubstr("--namespace=a.b is not a namespace name"));
  EXPECT_THAT(refused({.cluster_domain = "a b"}),
              HasSubstr("--cluster-domain=a b is not a domain"));
  EXPECT_THAT(refused({.image = "two words"}), HasSubstr("--image=two words is not an image name"));
  EXPECT_THAT(refused({.gpu_resource = "gpu"}), HasSubstr("--gpu-resource=gpu is not a resource"));
  EXPECT_THAT(refused({.cpu = "four"}), HasSubstr("--cpu=four is not an amount"));
  EXPECT_THAT(refused({.memory = "16GiB"}), HasSubstr("--memory=16GiB is not an amount"));
  EXPECT_THAT(refused({.variables = {{"A B", ""}}}), HasSubstr("--env=A B is not a variable"));
  EXPECT_THAT(refused({.claims = {{"data", "data"}}}),
              HasSubstr("--volume=data:data is not a claim"));
  EXPECT_THAT(refused({.secret = "a/b"}), HasSubstr("--secret=a/b is not the name"));
  EXPECT_THAT(refused({.run = {"train\xff.py"}}), HasSubstr("is not UTF-8"));
}

// Users who may read the job may not see its token, which is in the Secret only.
TEST(JobManifestTest, TheTokenIsInTheSecretAlone) {
  const std::string printed = Printed({.image = "train",
                                       .min_nodes = 2,
                                       .max_nodes = 2,
                                       .token = "0123abc\n",
                                       .run = {"train.py"}});
  const std::string job = printed.substr(printed.rfind("---"));
  EXPECT_THAT(printed, HasSubstr("0123abc"));
  EXPECT_THAT(job, HasSubstr("kind: Job"));
  EXPECT_THAT(job, Not(HasSubstr("0123abc")));
}

// kubectl refused a manifest with a control character in an argument, and changed an argument with
// a line separator.
TEST(JobManifestTest, WhatYamlReadsOtherwiseThanJsonIsEscaped) {
  const std::string text = Printed({.image = "i", .run = {"\x7f \u0085 \u009b \u2028 \ufeff ü 😀"}});
  EXPECT_THAT(text, HasSubstr("- \"\\u007f \\u0085 \\u009b \\u2028 \\ufeff ü 😀\"\n"));
}

}  // namespace
}  // namespace muster::launcher

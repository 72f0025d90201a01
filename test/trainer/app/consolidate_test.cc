// muster-train consolidate: both forms of a checkpoint are equivalent.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/command.h"
#include "test/support/temp_dir.h"
#include "test/trainer/ranks.h"
#include "trainer/io/torch_file.h"

namespace muster::trainer {
namespace {

namespace fs = std::filesystem;
using test::ReadAll;

class ConsolidateTest : public testing::Test {
 protected:
  ConsolidateTest() {
    for (const std::string form : {"whole", "shards"}) {
      TrainOk({"--dataset", "generated", "--model", "mlp", "--max-steps", "3", "--ema", "0.9",
               "--algorithm", "adamw", "--comm", "gloo", "--no-eval", "--checkpoint-dir",
               dir_.Path(form), "--checkpoint-format", form, "--checkpoint-every", "2"},
              2);
    }
  }

  // Runs muster-train with `arguments`; expects `code`. Returns stdout, or stderr after a failure.
  static std::string Do(const std::vector<std::string>& arguments, int code = 0) {
    test::Command command(MusterTrainWith(arguments));
    EXPECT_EQ(command.Wait(std::chrono::seconds(120)), code) << command.err();
    return code == 0 ? command.out() : command.err();
  }
  // The bytes of the checkpoint in `path` without the options, which contain its path.
  std::string WithoutOptions(const std::string& path) const {
    const auto value = ReadTorchFile(path);
    EXPECT_TRUE(value.ok()) << value.status();
    Dict rest;
    for (const auto& [key, entry] : *value->dict()) {
      if (key != ValueKey("options")) rest.Append(key, entry);
    }
    EXPECT_EQ(rest.size() + 1, value->dict()->size());
    EXPECT_TRUE(WriteTorchFile(rest, dir_.Path("rest.pt")).ok());
    return ReadAll(dir_.Path("rest.pt"));
  }

  const test::TempDir dir_;
  const std::string whole_ = dir_.Path("whole") + "/step-000000000003.pt";
  const std::string shards_ = dir_.Path("shards") + "/step-000000000003";
};

TEST_F(ConsolidateTest, ShardsBecomeTheFileThatWouldHaveBeenWritten) {
  const std::string file = dir_.Path("one.pt");
  const std::string out = Do({"consolidate", shards_, "--out", file});
  EXPECT_EQ(out.rfind(file + ": ", 0), 0u) << out;
  EXPECT_NE(out.find(" MB, of " + shards_ + "\n"), std::string::npos) << out;
  EXPECT_TRUE(WithoutOptions(file) == WithoutOptions(whole_));
}

TEST_F(ConsolidateTest, AFileBecomesShardsAndTheSameFileAgain) {
  for (const std::string count : {"1", "5"}) {
    const std::string directory = dir_.Path("new") + count + "/" + "step-000000000003";
    const std::string out =
        Do({"consolidate", dir_.Path("whole"), "--out", directory, "--shards", count});
    EXPECT_NE(out.find(count + (count == "1" ? " shard, " : " shards, ")), std::string::npos)
        << out;
    EXPECT_TRUE(fs::exists(directory + "/shard-00001-of-0000" + count + ".safetensors"));
    // A --checkpoint-dir with nothing else in it.
    const std::string again = dir_.Path("again.pt");
    Do({"consolidate", dir_.Path("new") + count, "--out", again});
    EXPECT_TRUE(ReadAll(again) == ReadAll(whole_)) << "the files differ";
  }
}

TEST_F(ConsolidateTest, TheOtherCommandsTakeShardsAsWell) {
  const auto losses = [&](const std::string& path) {
    const std::string out = Do({"eval", "--dataset", "generated", "--checkpoint", path});
    return out.substr(out.find("\ntest loss"));
  };
  EXPECT_EQ(losses(shards_), losses(whole_));
  EXPECT_EQ(losses(dir_.Path("shards")), losses(whole_));
  const std::string out =
      Do({"--dataset", "generated", "--model", "mlp", "--max-steps", "1", "--init-from", shards_});
  EXPECT_NE(out.find("parameters from " + shards_ + ": All keys matched successfully"),
            std::string::npos)
      << out;
}

TEST_F(ConsolidateTest, MistakesAreAnsweredInASentence) {
  const std::string file = dir_.Path("one.pt");
  const std::string begin = "muster-train: ";
  EXPECT_EQ(Do({"consolidate", dir_.Path("nothing"), "--out", file}, 2),
            begin + "read " + dir_.Path("nothing") + ": No such file or directory\n");
  fs::create_directory(dir_.Path("empty"));
  EXPECT_EQ(Do({"consolidate", dir_.Path("empty"), "--out", file}, 2),
            begin + "read a checkpoint from " + dir_.Path("empty") +
                ": it has neither an index.json nor checkpoints (step-000000000100, "
                "step-000000000100.pt, ...)\n");
  EXPECT_EQ(Do({"consolidate", whole_, "--out", shards_, "--shards", "2"}, 2),
            begin + "write shards into " + shards_ + ": it is not empty; name a new directory\n");
  EXPECT_EQ(Do({"consolidate", shards_, "--out", dir_.Path("empty")}, 2),
            begin + "write " + dir_.Path("empty") + ": is a directory\n");
  EXPECT_NE(Do({"consolidate", shards_}, 2).find("consolidate: --out is required"),
            std::string::npos);
  // This damaged the only checkpoint.
  EXPECT_EQ(Do({"consolidate", shards_, "--out", shards_ + "/index.json"}, 2),
            begin + "consolidate: --out " + shards_ + "/index.json would overwrite " + shards_ +
                "; name another place\n");
  const std::string second = shards_ + "/shard-00002-of-00002.safetensors";
  fs::resize_file(second, 100);
  EXPECT_EQ(Do({"consolidate", shards_, "--out", file}, 2)
                .rfind(begin + "read " + second + ": it is damaged: it has 100 bytes, and ", 0),
            0u);
  EXPECT_FALSE(fs::exists(file));
  EXPECT_NE(Do({"consolidate", "--help"}).find("--shards"), std::string::npos);
}

}  // namespace
}  // namespace muster::trainer

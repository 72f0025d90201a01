#include "base/redact.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace muster::base {
namespace {

using Words = std::vector<std::string>;
using ::testing::ElementsAre;

TEST(RedactTest, NamesOfSecretsAreToldFromThoseOfOtherThings) {
  for (const char* secret : {"HF_TOKEN",
                             "HUGGING_FACE_HUB_TOKEN",
                             "WANDB_API_KEY",
                             "AWS_SECRET_ACCESS_KEY",
                             "AWS_SESSION_TOKEN",
                             "PGPASSWORD",
                             "MYSQL_ROOT_PASSWORD",
                             "--api-key",
                             "--Token",
                             "OPENAI_APIKEY",
                             "NPM_TOKEN",
                             "client_secret",
                             "GITHUB_PAT",
                             "SSH_KEY_PASSPHRASE",
                             "GOOGLE_APPLICATION_CREDENTIALS_JSON",
                             "AWS_ACCESS_KEY",
                             "githubtoken",
                             "DB_PASS",
                             "MYSQL_PWD",
                             "PGPASS",
                             "MYPASS",
                             "--db-pass"}) {
    EXPECT_TRUE(IsSecretName(secret)) << secret;
  }
  for (const char* harmless :
       {"MUSTER_TOKEN_FILE", "TOKENIZERS_PARALLELISM", "--max-tokens", "--pad-token-id", "PWD",
        "OLD_PWD", "OLDPWD", "--bypass", "SSH_AUTH_SOCK", "--token-file", "MASTER_PORT", "KEYBOARD",
        "HF_HOME", "--monkey-patch", "", "-", "_", "GOOGLE_APPLICATION_CREDENTIALS_PATH"}) {
    EXPECT_FALSE(IsSecretName(harmless)) << harmless;
  }
}

TEST(RedactTest, ValuesOfSecretVariablesAreKnownWhereverTheyStand) {
  const Redactor redact(Words{"HF_TOKEN=correct horse", "OTHER=battery staple",
                              "LONG_TOKEN=correct horse battery", "SHORT_TOKEN=abc"});
  EXPECT_EQ(redact("login with 'correct horse' failed"), "login with '***' failed");
  EXPECT_EQ(redact("correct horse battery!"), "***!") << "the longest first";
  EXPECT_EQ(redact("battery staple abc"), "battery staple abc");
  const Redactor of_command({},
                            {"train", "--token", "my-own-words", "--key=more-words", "--lr", "1"});
  EXPECT_EQ(of_command("no my-own-words, no more-words: train 1"), "no ***, no ***: train 1");
}

TEST(RedactTest, WhatHasASecretsNameOrFormIsLeftOut) {
  const Redactor redact;
  const std::string key(36, 'a');
  for (const auto& [text, clear] : std::vector<std::pair<std::string, std::string>>{
           {"HF_TOKEN=abc def", "HF_TOKEN=*** def"},
           {"--password=p --lr=1", "--password=*** --lr=1"},
           {"api_key='a b' x", "api_key='***' x"},
           {"{\"api_key\": 1}", "{\"api_key\": 1}"},
           {"a=b&token=c&d=e", "a=b&token=***&d=e"},
           {"TOKEN=", "TOKEN="},
           {"https://me:pw@host/x?y", "https://***@host/x?y"},
           {"s3://bucket/a@b", "s3://bucket/a@b"},
           {"git clone https://" + key + "@github.com/x", "git clone https://***@github.com/x"},
           {"ghp_" + key + " said", "*** said"},
           {"(hf_" + key + ")", "(***)"},
           {"key sk-proj-" + key, "key ***"},
           {"AKIAABCDEFGHIJKLMNOP", "***"},
           {"Authorization: Bearer abcdefgh.ijk", "Authorization: Bearer ***"},
           {"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig", "***"},
           {"-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nend", "***\nend"},
           {"-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----",
            "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----"},
           {"task-force loss=0.5 sketch hf_small wallet_id=7",
            "task-force loss=0.5 sketch hf_small "
            "wallet_id=7"},
           {"File \"/a/sk-learn/train.py\", line 3", "File \"/a/sk-learn/train.py\", line 3"},
           {"", ""}}) {
    EXPECT_EQ(redact(text), clear);
    EXPECT_EQ(redact(clear), clear) << "once more changes nothing";
  }
}

TEST(RedactTest, AFlagsValueMayBeAWordOfItsOwn) {
  const Redactor redact;
  EXPECT_THAT(redact.Words({"train.py", "--api-key", "a b c", "--lr", "1", "--token=x y", "--key",
                            "--debug", "WANDB_API_KEY=1 2"}),
              ElementsAre("train.py", "--api-key", "***", "--lr", "1", "--token=***", "--key",
                          "--debug", "WANDB_API_KEY=***"));
}

// As a report would be lost with its end.
TEST(RedactTest, AnyBytesAreTaken) {
  const Redactor redact(Words{"A_TOKEN=secretsecret", "no equals"});
  std::string text;
  for (int i = 0; i < 2000; ++i) text += static_cast<char>(i * 31 % 256);
  EXPECT_EQ(redact(text).size(), text.size());
  EXPECT_EQ(redact(text + "secretsecret" + text).size(), 2 * text.size() + 3);
}

}  // namespace
}  // namespace muster::base

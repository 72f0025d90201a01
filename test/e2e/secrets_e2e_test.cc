// Fifty secrets as they reach a job: in variables, in flags, in URLs, and in a worker's last
// output. Muster must not print, write or send any of them. (A worker's own output, to the console
// or to its log, is not changed.)
#include <csignal>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"
#include "test/support/temp_dir.h"
#include "test/support/wait_until.h"

namespace muster::test {
namespace {

using Words = std::vector<std::string>;

// Name and value.
const std::vector<std::pair<std::string, std::string>> kVariables = {
    {"HF_TOKEN", "plain-words-hf"},
    {"HUGGING_FACE_HUB_TOKEN", "plain-words-hub"},
    {"WANDB_API_KEY", "0123456789abcdef0123456789abcdef01234567"},
    {"AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"},
    {"AWS_SESSION_TOKEN", "FwoGZXIvYXdzEJr//////////wEaDL"},
    {"AWS_ACCESS_KEY", "one-more-of-amazon"},
    {"GITHUB_TOKEN", "ordinary-looking-github"},
    {"GITLAB_PRIVATE_TOKEN", "ordinary-looking-gitlab"},
    {"OPENAI_API_KEY", "ordinary-looking-openai"},
    {"ANTHROPIC_API_KEY", "ordinary-looking-anthropic"},
    {"COMET_API_KEY", "comet-comet-comet"},
    {"NEPTUNE_API_TOKEN", "neptune-neptune"},
    {"MLFLOW_TRACKING_PASSWORD", "mlflow-password"},
    {"PGPASSWORD", "postgres-password"},
    {"MYSQL_ROOT_PASSWORD", "mysql root password"},
    {"REDIS_PASSWORD", "redis;password,with=signs"},
    {"AZURE_CLIENT_SECRET", "azure~client~secret"},
    {"AZURE_STORAGE_KEY", "azure+storage/key=="},
    {"GCP_SERVICE_ACCOUNT_KEY", "{\"private\": \"json of google\"}"},
    {"DOCKER_PASSWORD", "docker$password"},
    {"NPM_TOKEN", "npm-token-in-words"},
    {"SLACK_BOT_TOKEN", "slack-token-in-words"},
    {"SSH_KEY_PASSPHRASE", "a passphrase of words"},
    {"ENCRYPTION_KEY", "encryption-key-in-words"},
    {"MY_SECRET", "my-very-own-secret"},
};

// Words of the command line, and the secret in each.
const std::vector<std::pair<Words, std::string>> kArguments = {
    {{"--api-key=flag-api-key"}, "flag-api-key"},
    {{"--api_key=flag_api_key_2"}, "flag_api_key_2"},
    {{"--token=flag-token-words"}, "flag-token-words"},
    {{"--hf-token", "flag-hf-token"}, "flag-hf-token"},
    {{"--password", "flag-password-words"}, "flag-password-words"},
    {{"--wandb-api-key", "flag-wandb-words"}, "flag-wandb-words"},
    {{"--client-secret=flag-client-words"}, "flag-client-words"},
    {{"model.auth_token=hydra-auth-token"}, "hydra-auth-token"},
    {{"--env", "SOME_TOKEN=nested-token-words"}, "nested-token-words"},
    {{"--data=https://me:url-password-1@host/data"}, "url-password-1"},
    {{"--hub", "https://url-token-2@hub.example.org/x"}, "url-token-2"},
    {{"--db=postgresql://user:url-password-3@db/x"}, "url-password-3"},
    {{"--link=https://host/x?a=1&token=query-token-words&b=2"}, "query-token-words"},
};

// Secrets recognized by their form, wherever a worker has them from.
const Words kForms = {
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz",
    "glpat-abcdefghijklmnopqrst",
    "hf_abcdefghijklmnopqrstuvwxyzABCDEF",
    "sk-proj-abcdefghijklmnopqrstuvwxyz012345",
    "sk-ant-api03-abcdefghijklmnopqrstuvwxyz",
    "xoxb-123456789012-abcdefghijkl",
    "AIzaSyA-abcdefghijklmnopqrstuvwxyz012345",
    "AKIAIOSFODNN7EXAMPLE",
    "npm_abcdefghijklmnopqrstuvwxyz0123456789",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "MIIEpAIBAAKCAQEA7bq0of0keys0body",
};

class SecretsTest : public E2eTest {
 protected:
  SecretsTest() {
    for (const auto& [name, value] : kVariables) {
      environment_.push_back(name + "=" + value);
      secrets_.insert(value);
    }
    for (const auto& [words, secret] : kArguments) {
      arguments_.insert(arguments_.end(), words.begin(), words.end());
      secrets_.insert(secret);
    }
    secrets_.insert(kForms.begin(), kForms.end());
    std::string script = "{ env; for word in \"$@\"; do echo \"$word\"; done\n";
    for (const std::string& form : kForms) {
      script += form.starts_with("MII") ? "printf -- '-----BEGIN PRIVATE KEY-----\\n" + form +
                                              "\\n-----END PRIVATE KEY-----\\n'\n"
                                        : "echo 'denied: " + form + "'\n";
    }
    // The error file as torch.distributed.elastic's `record` writes it.
    script += "} >" + Path("said") + "\ncat " + Path("said") + " >&2\n" +
              "python3 - <<'END'\nimport json, os\nsaid = open('" + Path("said") +
              "').read()\njson.dump({'message': {'message': said, 'extraInfo': {'py_callstack': "
              "said, 'timestamp': '1'}}}, open(os.environ['TORCHELASTIC_ERROR_FILE'], 'w'))\n"
              "END\nexit 3\n";
    script_ = Write("worker.sh", script, 0755);
  }

  Words Run(const Words& flags) const {
    Words words = flags;
    words.insert(words.end(), {"--no-python", "sh", script_});
    words.insert(words.end(), arguments_.begin(), arguments_.end());
    return words;
  }

  void ExpectNone(const std::string& where, const std::string& text) const {
    EXPECT_FALSE(text.empty()) << where;
    for (const std::string& secret : secrets_) {
      EXPECT_EQ(text.find(secret), std::string::npos) << where << " shows " << secret;
    }
  }

  Words environment_;
  Words arguments_;
  std::set<std::string> secrets_;
  std::string script_;
};

TEST_F(SecretsTest, ThereAreFiftyAndTheWorkerGetsThemAll) {
  EXPECT_EQ(secrets_.size(), 50u);
  Command run = StartMuster(Run({"--standalone"}), environment_);
  EXPECT_EQ(run.Wait(), 1);
  const std::string said = ReadAll(Path("said"));
  for (const std::string& secret : secrets_) {
    EXPECT_NE(said.find(secret), std::string::npos) << secret;
  }
}

TEST_F(SecretsTest, NoneIsInWhatIsPrintedBeforeAStart) {
  for (const char* flag : {"--dry-run", "--print-config"}) {
    Command shown = StartMuster(Run({flag, "--standalone"}), environment_);
    EXPECT_EQ(shown.Wait(), 0) << shown.err();
    ExpectNone(flag, shown.out());
    EXPECT_NE(shown.out().find("***"), std::string::npos);
  }
}

TEST_F(SecretsTest, NoneIsInReportsLogsEventsErrorFilesOrWhatOthersAreTold) {
  Command daemon({DaemonPath(), "--listen=127.0.0.1:0", "--ready-fd=1", "--log-level=trace"});
  ASSERT_TRUE(daemon.WaitForOut("\n")) << daemon.err();
  const std::string endpoint = "127.0.0.1:" + Lines(daemon.out())[0];
  Words variables = environment_;
  variables.push_back("TORCHELASTIC_ERROR_FILE=" + Path("root_cause.json"));
  const Words flags = {"--nnodes=2",
                       "--rdzv-id=job",
                       "--rdzv-conf=is_host=0",
                       "--rdzv-endpoint=" + endpoint,
                       "--log-level=debug",
                       "--redirects=3",
                       "--log-dir=" + Path("logs"),
                       "--event-log=" + Path("events")};
  Command one = StartMuster(Run(flags), variables);
  // The other node has none of these secrets, and learns of the first one's failure.
  Words idle = flags;
  idle.insert(idle.end(), {"--no-python", "sleep", "600"});
  Command other = StartMuster(idle);
  EXPECT_EQ(one.Wait(), 1) << one.err();
  EXPECT_EQ(other.Wait(), 1) << other.err();
  ExpectNone("the report", one.err());
  EXPECT_NE(one.err().find("***"), std::string::npos) << "it has no last words at all";
  ExpectNone("the other node's report", other.err());
  EXPECT_NE(other.err().find("***"), std::string::npos);
  ASSERT_TRUE(daemon.WaitForErr(" left")) << daemon.err();
  ExpectNone("the daemon's log", daemon.err());
  ExpectNone("the event log", ReadAll(Path("events")));
  ExpectNone("the root cause", ReadAll(Path("root_cause.json")));
}

TEST_F(SecretsTest, NoneIsInTheListOfRuns) {
  Words words =
      Joined({"--standalone", "--no-python", "sh", "-c", "echo up; sleep 600", "x"}, arguments_);
  Command run = StartMuster(words, environment_);
  ASSERT_TRUE(run.WaitForOut("up")) << run.err();
  for (const Words& flags : {Words{}, Words{"--json"}}) {
    Words ps = Joined({MusterPath(), "ps"}, flags);
    // It is written a moment after the workers' start.
    std::string listed;
    EXPECT_TRUE(WaitUntil([&] {
      Command command(ps, Environment());
      EXPECT_EQ(command.Wait(), 0) << command.err();
      listed = command.out();
      return listed.find("running") != std::string::npos;
    }));
    ExpectNone("muster ps", listed);
  }
  run.Signal(SIGTERM);
  run.Wait();
}

}  // namespace
}  // namespace muster::test

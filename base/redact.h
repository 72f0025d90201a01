// Secrets in what is shown and kept: command lines, environments, the last words of a worker.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::base {

// What stands in a secret's place.
inline constexpr absl::string_view kRedacted = "***";

// Whether what has this name is a secret: a variable ("HF_TOKEN", "AWS_SECRET_ACCESS_KEY",
// "PGPASSWORD") or a flag ("--api-key"). Upper and lower case, '-' and '_' are the same. Names of
// files that hold one are none ("MUSTER_TOKEN_FILE"), nor is what merely has to do with tokens of
// text ("TOKENIZERS_PARALLELISM", "--max-tokens").
bool IsSecretName(absl::string_view name);

// Recognizes secrets by their value, where it is known; by their name ("NAME=value",
// "--name value"); by the user's part of a URL ("https://user:password@host"); and by their form:
// tokens of GitHub, GitLab, Hugging Face, OpenAI, Slack, Google, AWS, npm and PyPI, JSON web
// tokens, private keys in PEM, and what follows "Bearer".
//
// It is a net, not a wall: a secret of another form that nobody has given a name is shown.
class Redactor {
 public:
  Redactor() = default;
  // The secrets of this environment, entries "NAME=value", and of this command line are known from
  // now on. A value that is shorter than eight bytes would be found in ordinary words.
  explicit Redactor(const std::vector<std::string>& environment,
                    const std::vector<std::string>& command = {});

  // The text without secrets.
  std::string operator()(absl::string_view text) const;

  // A command line without them: also where a flag and its value are two words.
  std::vector<std::string> Words(const std::vector<std::string>& words) const;

 private:
  void Know(std::string value);

  std::vector<std::string> known_;  // the longest first
};

}  // namespace muster::base

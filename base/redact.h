// Removes secrets from what is shown and stored: command lines, environments, a worker's last
// output.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::base {

// Replaces a secret.
inline constexpr absl::string_view kRedacted = "***";

// Whether the name is that of a secret: a variable ("HF_TOKEN", "AWS_SECRET_ACCESS_KEY",
// "PGPASSWORD") or a flag ("--api-key"). Ignores case, and '-' equals '_'. The name of a file that
// holds a secret is not one ("MUSTER_TOKEN_FILE"), nor is a name about text tokens
// ("TOKENIZERS_PARALLELISM", "--max-tokens").
bool IsSecretName(absl::string_view name);

// Recognizes secrets by their value, where it is known; by their name ("NAME=value", "--name
// value"); by the user part of a URL ("https://user:password@host"); and by their form: tokens of
// GitHub, GitLab, Hugging Face, OpenAI, Slack, Google, AWS, npm and PyPI, JSON web tokens, private
// keys in PEM, and what follows "Bearer".
//
// This is best effort: a secret of another form without a telling name is shown.
class Redactor {
 public:
  Redactor() = default;
  // Learns the secrets in `environment` (entries "NAME=value") and `command` by their names. Values
  // shorter than eight bytes are skipped: they would match ordinary words.
  explicit Redactor(const std::vector<std::string>& environment,
                    const std::vector<std::string>& command = {});

  // The text with secrets replaced.
  std::string operator()(absl::string_view text) const;

  // The same for a command line, including flags whose value is the next word.
  std::vector<std::string> Words(const std::vector<std::string>& words) const;

 private:
  void Know(std::string value);

  std::vector<std::string> known_;  // longest first
};

}  // namespace muster::base

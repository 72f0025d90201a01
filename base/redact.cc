#include "base/redact.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace muster::base {
namespace {

constexpr std::size_t kShortestKnown = 8;

bool IsNamePart(char c) {
  return absl::ascii_isalnum(c) || c == '_' || c == '-';
}

// Characters that tokens consist of, for all issuers.
bool IsTokenPart(char c) {
  return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.' || c == '/' || c == '+' ||
         c == '=';
}

// Where the value of "NAME=value" ends.
bool EndsValue(char c) {
  return absl::ascii_isspace(c) || c == '"' || c == '\'' || c == ',' || c == ';' || c == '&' ||
         c == ')' || c == ']' || c == '}' || c == '\\' || c == '`';
}

struct Form {
  absl::string_view prefix;
  std::size_t shortest;  // of the part after the prefix
};

constexpr Form kForms[] = {
    {"github_pat_", 20}, {"ghp_", 20},   {"gho_", 20},  {"ghu_", 20},  {"ghs_", 20},
    {"ghr_", 20},        {"glpat-", 16}, {"hf_", 20},   {"sk-", 20},   {"xoxb-", 10},
    {"xoxp-", 10},       {"xoxa-", 10},  {"xoxr-", 10}, {"xoxs-", 10}, {"AIza", 30},
    {"AKIA", 16},        {"ASIA", 16},   {"npm_", 30},  {"pypi-", 40}, {"eyJ", 20},
};

// The length of the token at the start of `text`, recognized by its form; 0 if there is none.
// `text` must start at a word.
std::size_t TokenLength(absl::string_view text) {
  for (const Form& form : kForms) {
    if (!absl::StartsWith(text, form.prefix)) continue;
    std::size_t end = form.prefix.size();
    while (end < text.size() && IsTokenPart(text[end])) ++end;
    if (end - form.prefix.size() >= form.shortest) return end;
  }
  return 0;
}

// The length of a PEM block from "-----BEGIN RSA PRIVATE KEY-----" to its end, or to the end of the
// text.
std::size_t PrivateKeyLength(absl::string_view text) {
  if (!absl::StartsWith(text, "-----BEGIN ")) return 0;
  const std::size_t head = text.find("-----", 11);
  if (head == absl::string_view::npos || head > 64 ||
      !absl::StrContains(text.substr(0, head), "PRIVATE KEY")) {
    return 0;
  }
  const std::size_t tail = text.find("-----END ", head);
  if (tail == absl::string_view::npos) return text.size();
  const std::size_t end = text.find("-----", tail + 9);
  return end == absl::string_view::npos ? text.size() : end + 5;
}

// The length of "user:password" if `text`, which follows "://", begins with "user:password@"; else
// 0.
std::size_t UserInfoLength(absl::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '@') return i;
    if (c == '/' || c == '?' || c == '#' || c == '"' || c == '\'' || absl::ascii_isspace(c))
      return 0;
  }
  return 0;
}

// The length of "Bearer abc", with the word, if `text` begins with one; else 0.
std::size_t BearerLength(absl::string_view text) {
  constexpr absl::string_view kWord = "bearer ";
  if (!absl::StartsWithIgnoreCase(text, kWord)) return 0;
  std::size_t end = kWord.size();
  while (end < text.size() && IsTokenPart(text[end])) ++end;
  return end - kWord.size() >= kShortestKnown ? end : 0;
}

// The length of the value at the start of `text`, without quotes. Sets `quotes` to the number of
// quotes before it (0 or 1).
std::size_t ValueLength(absl::string_view text, std::size_t* quotes) {
  *quotes = !text.empty() && (text[0] == '"' || text[0] == '\'') ? 1 : 0;
  std::size_t end = *quotes;
  if (*quotes == 1) {
    while (end < text.size() && text[end] != text[0] && text[end] != '\n') ++end;
  } else {
    while (end < text.size() && !EndsValue(text[end])) ++end;
  }
  return end - *quotes;
}

}  // namespace

bool IsSecretName(absl::string_view name) {
  while (absl::StartsWith(name, "-")) name.remove_prefix(1);
  const std::vector<std::string> parts = absl::StrSplit(
      absl::AsciiStrToUpper(absl::StrReplaceAll(name, {{"-", "_"}})), '_', absl::SkipEmpty());
  if (parts.empty()) return false;
  const std::string& last = parts.back();
  // Where a secret is stored, and what it is called, is not secret.
  for (const char* harmless : {"FILE", "PATH", "DIR", "FD", "NAME", "ID", "URL", "TYPE", "SOCK"}) {
    if (last == harmless) return false;
  }
  for (const std::string& part : parts) {
    for (const char* word :
         {"SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS"}) {
      if (part == word) return true;
    }
    if (absl::EndsWith(part, "PASSWORD") || absl::EndsWith(part, "SECRET")) return true;
  }
  // PWD and OLDPWD are directories.
  const bool is_password = last == "PASS" || last == "PGPASS" || last == "MYPASS" ||
                           (last == "PWD" && parts.size() > 1 && parts[0] != "OLD");
  return is_password || last == "TOKEN" || last == "KEY" || last == "APIKEY" || last == "PAT" ||
         last == "AUTH" || absl::EndsWith(last, "APIKEY") || absl::EndsWith(last, "TOKEN");
}

Redactor::Redactor(const std::vector<std::string>& environment,
                   const std::vector<std::string>& command) {
  for (const std::vector<std::string>* const words : {&environment, &command}) {
    for (const std::string& word : *words) {
      const std::size_t equals = word.find('=');
      if (equals != std::string::npos && IsSecretName(word.substr(0, equals))) {
        Know(word.substr(equals + 1));
      }
    }
  }
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string& flag = command[i - 1];
    if (absl::StartsWith(flag, "-") && !absl::StartsWith(command[i], "-") && IsSecretName(flag)) {
      Know(command[i]);
    }
  }
  std::sort(known_.begin(), known_.end(), [](const std::string& one, const std::string& other) {
    return one.size() != other.size() ? one.size() > other.size() : one < other;
  });
}

void Redactor::Know(std::string value) {
  if (value.size() >= kShortestKnown) known_.push_back(std::move(value));
}

std::string Redactor::operator()(absl::string_view text) const {
  std::string clear(text);
  for (const std::string& value : known_) {
    if (absl::StrContains(clear, value)) {
      clear = absl::StrReplaceAll(clear, {{value, kRedacted}});
    }
  }
  const absl::string_view rest(clear);
  std::string out;
  std::size_t name = std::string::npos;  // start of the current word
  for (std::size_t at = 0; at < rest.size();) {
    const absl::string_view here = rest.substr(at);
    const bool begins_word =
        at == 0 || !IsTokenPart(rest[at - 1]) || rest[at - 1] == '=' || rest[at - 1] == '/';
    std::size_t length = 0;
    if (begins_word) {
      length = TokenLength(here);
      if (length == 0) length = PrivateKeyLength(here);
      if (length == 0 && BearerLength(here) > 0) {
        constexpr std::size_t kWord = 7;
        absl::StrAppend(&out, here.substr(0, kWord), kRedacted);
        at += BearerLength(here);
        name = std::string::npos;
        continue;
      }
    }
    if (length == 0 && absl::StartsWith(here, "://")) {
      absl::StrAppend(&out, here.substr(0, 3));
      at += 3;
      const std::size_t user = UserInfoLength(rest.substr(at));
      if (user > 0) absl::StrAppend(&out, kRedacted);
      at += user;
      name = std::string::npos;
      continue;
    }
    if (length > 0) {
      absl::StrAppend(&out, kRedacted);
      at += length;
      name = std::string::npos;
      continue;
    }
    const char c = rest[at];
    if (c == '=' && name != std::string::npos && IsSecretName(rest.substr(name, at - name))) {
      std::size_t quotes = 0;
      const std::size_t value = ValueLength(rest.substr(at + 1), &quotes);
      absl::StrAppend(&out, rest.substr(at, 1 + quotes), value > 0 ? kRedacted : "");
      at += 1 + quotes + value;
      name = std::string::npos;
      continue;
    }
    if (!IsNamePart(c)) {
      name = std::string::npos;
    } else if (name == std::string::npos) {
      name = at;
    }
    out.push_back(c);
    ++at;
  }
  return out;
}

std::vector<std::string> Redactor::Words(const std::vector<std::string>& words) const {
  std::vector<std::string> clear;
  bool is_value = false;  // the word before was a flag whose value is secret
  for (const std::string& word : words) {
    const bool is_flag = absl::StartsWith(word, "-");
    if (is_value && !is_flag) {
      clear.emplace_back(kRedacted);
      is_value = false;
      continue;
    }
    // Here the value is the rest of the word, even if it contains spaces.
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos && IsSecretName(absl::string_view(word).substr(0, equals))) {
      clear.push_back(absl::StrCat(word.substr(0, equals + 1), kRedacted));
    } else {
      clear.push_back((*this)(word));
    }
    is_value = is_flag && equals == std::string::npos && IsSecretName(word);
  }
  return clear;
}

}  // namespace muster::base

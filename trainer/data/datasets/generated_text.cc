#include "trainer/data/datasets/generated_text.h"

#include <array>
#include <random>
#include <string_view>
#include <vector>

namespace muster::trainer {
namespace {

constexpr std::size_t kWords = 200;
constexpr std::size_t kFollowers = 4;
constexpr std::size_t kShortestSentence = 4;
constexpr std::size_t kSentenceLengths = 9;

struct Word {
  std::string letters;
  std::array<std::size_t, kFollowers> followers;  // words that may come next
};

// The language does not depend on the seed: what one text teaches holds for another.
std::vector<Word> Language() {
  constexpr std::string_view kConsonants = "bcdfghklmnprstvw";
  constexpr std::string_view kVowels = "aeiou";
  std::mt19937_64 random(10);
  std::vector<Word> words(kWords);
  for (Word& word : words) {
    const std::size_t syllables = 1 + random() % 3;
    for (std::size_t i = 0; i < syllables; ++i) {
      word.letters += kConsonants[random() % kConsonants.size()];
      word.letters += kVowels[random() % kVowels.size()];
    }
    for (std::size_t& follower : word.followers) follower = random() % kWords;
  }
  return words;
}

char Capital(char letter) {
  return static_cast<char>(letter - 'a' + 'A');
}

}  // namespace

std::string GenerateText(std::int64_t bytes, std::uint64_t seed) {
  const std::vector<Word> words = Language();
  // Only the generator's own bits are used: the standard's distributions differ between libraries.
  std::mt19937_64 random(seed);
  const auto size = static_cast<std::size_t>(bytes);
  std::string text;
  while (text.size() < size) {
    const std::size_t length = kShortestSentence + random() % kSentenceLengths;
    std::size_t word = random() % kWords;
    for (std::size_t i = 0; i < length; ++i) {
      const std::size_t begin = text.size();
      text += words[word].letters;
      if (i == 0) text[begin] = Capital(text[begin]);
      if (i + 1 < length) text += ' ';
      word = words[word].followers[random() % kFollowers];
    }
    text += random() % 4 == 0 ? ".\n" : ". ";
  }
  text.resize(size);
  return text;
}

}  // namespace muster::trainer

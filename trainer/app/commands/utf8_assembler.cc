#include "trainer/app/commands/utf8_assembler.h"

#include <utility>

namespace muster::trainer {
namespace {

// How many bytes the character has that begins with `byte`; 1 for what begins none.
std::size_t CharacterLength(unsigned char byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return 2;
  if (byte >= 0xE0 && byte <= 0xEF) return 3;
  if (byte >= 0xF0 && byte <= 0xF4) return 4;
  return 1;
}

bool ContinuesCharacter(unsigned char byte) {
  return byte >= 0x80 && byte <= 0xBF;
}

}  // namespace

std::string Utf8Assembler::Add(char byte) {
  const auto bits = static_cast<unsigned char>(byte);
  std::string broken;
  if (!held_.empty() && !ContinuesCharacter(bits)) broken = Finish();
  if (held_.empty()) length_ = CharacterLength(bits);
  held_ += byte;
  return held_.size() < length_ ? broken : broken + Finish();
}

std::string Utf8Assembler::Finish() {
  return std::exchange(held_, {});
}

}  // namespace muster::trainer

#include "trainer/io/file_facts.h"

#include <libdeflate.h>

namespace muster::trainer {

void FileFacts::Add(std::string_view more) {
  // To libdeflate a null pointer, which a tensor without elements has, means to begin anew.
  if (more.empty()) return;
  bytes += more.size();
  crc32 = libdeflate_crc32(crc32, more.data(), more.size());
}

}  // namespace muster::trainer

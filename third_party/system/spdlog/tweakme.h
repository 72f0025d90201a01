// What spdlog asks its users to decide in a file of this name. Debian has spdlog and fmt as shared
// objects and as headers that compile them into every unit anew, 10 s for each line of a log. Here
// they are compiled once, in third_party/system/spdlog.cc.
#pragma once

#define SPDLOG_COMPILED_LIB
#define SPDLOG_FMT_EXTERNAL

#include <fmt/format.h>

// fmt/format.h has the body, and 9.1 does not say that it is compiled elsewhere.
FMT_BEGIN_NAMESPACE
namespace detail {
extern template void vformat_to(buffer<char>&, string_view,
                                basic_format_args<FMT_BUFFER_CONTEXT(char)>, locale_ref);
}
FMT_END_NAMESPACE

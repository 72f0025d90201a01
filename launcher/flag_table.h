// The flags of `muster run`: one row for each. A row is all there is to a flag: its names, its
// environment variable, its lines in the help text and what it sets. Whoever adds a flag adds a
// row, a setter and a field of RunFlags, and decides in flags.cc what it means.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "launcher/flag_setters.h"
#include "launcher/run_flags.h"

namespace muster::launcher {

struct Flag {
  enum class Kind {
    kSwitch,  // takes no value
    kValue,
    kAsk,  // a switch that asks for a text and has no environment variable
  };

  // With dashes ("--rdzv-id"). The spelling with underscores and the variable PET_RDZV_ID follow
  // from it.
  absl::string_view name;
  // "-r", or empty.
  absl::string_view short_name = {};
  Kind kind = Kind::kValue;
  // In the help text: the heading it stands under, what the value is, what it does, and what holds
  // when it is not given.
  absl::string_view group;
  absl::string_view value_name = {};
  absl::string_view help;
  absl::string_view default_text = "off";
  // A variable that is asked after PET_*, or empty.
  absl::string_view other_variable = {};
  // Puts the value ("1" or "0" for a switch) into place, or says what is wrong with it.
  Setter set;
};

// All flags, in the order of the help text; the rows of a group stand together.
absl::Span<const Flag> RunFlagTable();

}  // namespace muster::launcher

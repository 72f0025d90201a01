// Standard input, output and error, which a process need not be given.
#pragma once

namespace muster::base {

// Opens /dev/null for each of descriptors 0, 1 and 2 that is closed. To be called by main() before
// it opens anything: what is opened first would otherwise be one of the three, and be read from and
// written to as such. Where this is linked, it is done once before static objects are made, too.
void FillStdio();

}  // namespace muster::base

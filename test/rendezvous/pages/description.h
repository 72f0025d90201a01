// docs/observing/openapi.json, and whether answers are as it says.
#pragma once

#include <string>

#include "base/json.h"
#include "rendezvous/server/daemon_pages.h"

namespace muster::rendezvous {

// The whole description.
base::Json Description();

// Whether a value is as a schema of it says; the first that is not, named.
std::string Objection(const base::Json& value, base::Json schema, const base::Json& api,
                      const std::string& where);

// What is not as it says of answers of that path; "" if all is.
std::string Objection(const HttpAnswer& answer, const std::string& path, const base::Json& api);

}  // namespace muster::rendezvous

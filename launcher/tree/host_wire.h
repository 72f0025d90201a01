// The launch tree's values as messages (proto/launch.proto).
#pragma once

#include "launcher/hosts/host_list.h"
#include "launcher/tree/fan_out.h"
#include "launcher/tree/host_news.h"
#include "proto/launch.pb.h"

namespace muster::launcher {

Host ToHost(const launch::v1::Host& message);
// With no failures yet.
launch::v1::Host ToMessage(const Host& host, HostIndex index);
FanOut::Charge ToCharge(const launch::v1::Host& message);

launch::v1::News ToMessage(const HostNews& news);
// Texts are cut, and made safe to show.
HostNews ToNews(const launch::v1::News& message);

}  // namespace muster::launcher

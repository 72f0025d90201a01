#include "rendezvous/pages/log_excerpt.h"

#include <chrono>
#include <utility>

#include <boost/asio/post.hpp>

namespace muster::rendezvous {
namespace {

// Less than an HTTP connection waits.
constexpr std::chrono::seconds kExcerptPatience(4);

}  // namespace

LogExcerpt::LogExcerpt(boost::asio::io_context& io, LogExchange& logs, LogRequest request,
                       std::function<void(Result)> done)
    : io_(io), logs_(logs), done_(std::move(done)), limit_(io) {
  limit_.expires_after(kExcerptPatience);
  limit_.async_wait(lifetime_.Guard([this](const boost::system::error_code& error) {
    if (error) return;
    result_.notices.push_back("not all was there in time");
    End(absl::OkStatus());
  }));
  reader_ = logs_.OpenReader(std::move(request),
                             {.on_part = [this](const LogPart& part) { Take(part); },
                              .on_end = [this](const absl::Status& status) { End(status); }});
}

LogExcerpt::~LogExcerpt() {
  // No effect when it has ended.
  logs_.CloseReader(reader_);
}

void LogExcerpt::Take(const LogPart& part) {
  if (const auto* text = std::get_if<LogText>(&part)) result_.text += text->bytes;
  if (const auto* notice = std::get_if<LogNotice>(&part)) {
    result_.notices.push_back(notice->sentence);
  }
  if (const auto* round = std::get_if<LogRound>(&part)) result_.round = round->round;
  // From the loop: the reader may not have its number yet.
  boost::asio::post(io_, lifetime_.Guard([this] {
    if (over_) return;
    if (result_.text.size() < kMostBytes) return logs_.Took(reader_);
    result_.notices.push_back("there is more, which is not shown");
    End(absl::OkStatus());
  }));
}

void LogExcerpt::End(const absl::Status& status) {
  if (std::exchange(over_, true)) return;
  limit_.cancel();
  // What is missing was told.
  if (!absl::IsDataLoss(status)) result_.status = status;
  boost::asio::post(io_, lifetime_.Guard([this] {
    logs_.CloseReader(reader_);
    const auto done = std::move(done_);
    done(std::move(result_));
  }));
}

}  // namespace muster::rendezvous

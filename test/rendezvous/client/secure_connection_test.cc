// Who is let in at a port that asks for a token, and what those hear who are not. Tools block, so
// they run on a thread of their own while the server's loop runs here.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include <openssl/ssl.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "absl/time/clock.h"
#include "rendezvous/client/daemon_channel.h"
#include "rendezvous/client/rendezvous_client.h"
#include "rendezvous/server/server.h"
#include "test/rendezvous/support/join_request.h"
#include "test/rendezvous/support/recording_listener.h"
#include "test/support/run_until.h"
#include "test/support/site_authority.h"
#include "test/support/temp_dir.h"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;
using std::chrono::seconds;
using test::RunUntil;
using ::testing::EndsWith;
using ::testing::StartsWith;

const Token kToken = Token::Random();

struct SslFreer {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};

void Use(SSL_CTX* context, const Identity& identity) {
  BIO* bio = BIO_new_mem_buf(identity.certificate.data(), -1);
  X509* const certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  SSL_CTX_use_certificate(context, certificate);
  X509_free(certificate);
  BIO_free(bio);
  bio = BIO_new_mem_buf(identity.key.data(), -1);
  EVP_PKEY* const key = PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
  SSL_CTX_use_PrivateKey(context, key);
  EVP_PKEY_free(key);
  BIO_free(bio);
}

class SecureConnectionTest : public ::testing::Test {
 protected:
  ~SecureConnectionTest() override {
    server_.reset();
    io_.restart();
    io_.run();
  }

  void Serve(const Credentials& credentials) {
    server_.emplace(io_);
    ASSERT_TRUE(server_->Listen({"127.0.0.1", 0}, credentials).ok());
  }

  // What somebody else does while the server's loop runs.
  template <typename Result>
  Result Meanwhile(std::function<Result()> what) {
    auto done = std::async(std::launch::async, std::move(what));
    EXPECT_TRUE(RunUntil(
        io_, [&] { return done.wait_for(seconds(0)) == std::future_status::ready; }, seconds(60)));
    return done.get();
  }

  // Why a tool with these credentials is not answered; "" if it is.
  std::string Ask(const Credentials& credentials) {
    const DaemonOptions daemon{.endpoint = {"127.0.0.1", server_->port()},
                               .credentials = credentials};
    return Meanwhile<std::string>(
        [daemon] { return std::string(ListJobs(daemon).status().message()); });
  }

  // What OpenSSL makes of a connection with these versions and certificates: the version it agreed
  // on and what it could read, or what failed.
  std::string Handshake(int lowest, int highest, const std::optional<Identity>& identity) {
    const std::uint16_t port = server_->port();
    return Meanwhile<std::string>([=]() -> std::string {
      const std::unique_ptr<SSL_CTX, SslFreer> context(SSL_CTX_new(TLS_client_method()));
      SSL_CTX_set_min_proto_version(context.get(), lowest);
      SSL_CTX_set_max_proto_version(context.get(), highest);
      SSL_CTX_set_cipher_list(context.get(), "ALL:@SECLEVEL=0");
      if (identity) Use(context.get(), *identity);
      const std::unique_ptr<SSL, SslFreer> ssl(SSL_new(context.get()));
      SSL_set_alpn_protos(ssl.get(), reinterpret_cast<const unsigned char*>("\2h2"), 3);
      boost::asio::io_context io;
      tcp::socket socket(io);
      socket.connect({boost::asio::ip::make_address("127.0.0.1"), port});
      SSL_set_fd(ssl.get(), socket.native_handle());
      if (SSL_connect(ssl.get()) != 1) return "no handshake";
      // With TLS 1.3 a server judges a client's certificate when the client is already done.
      char byte;
      return std::string(SSL_get_version(ssl.get())) +
             (SSL_read(ssl.get(), &byte, 1) == 1 ? ", served" : ", turned away");
    });
  }

  boost::asio::io_context io_;
  std::optional<Server> server_;
};

TEST_F(SecureConnectionTest, WhoHasTheTokenIsServed) {
  Serve(Credentials::FromToken(kToken, Role::kDaemon));
  EXPECT_EQ(Ask(Credentials::FromToken(kToken, Role::kTool)), "");
}

TEST_F(SecureConnectionTest, NodesMeetAndTheHostsGuardIsHeard) {
  Serve(Credentials::FromToken(kToken, Role::kDaemon));
  std::vector<std::unique_ptr<RecordingListener>> heard;
  std::vector<std::unique_ptr<RendezvousClient>> clients;
  for (const int node : {1, 2}) {
    heard.push_back(std::make_unique<RecordingListener>());
    clients.push_back(MakeGrpcClient(io_,
                                     {.endpoint = {"127.0.0.1", server_->port()},
                                      .credentials = Credentials::FromToken(kToken, Role::kAgent)},
                                     *heard.back()));
    JoinRequest request = RequestFor(node, 2);
    request.settings.lease = std::chrono::hours(1);
    clients.back()->Join(request);
  }
  for (const auto& node : heard) {
    EXPECT_TRUE(RunUntil(io_, [&] { return node->Last<Assignment>() != nullptr; }));
  }
  // In plain text over a connection of its own, from a process that cannot speak TLS.
  const auto notice = clients[1]->death_notice();
  ASSERT_TRUE(notice.has_value());
  tcp::socket guard(io_);
  guard.connect(notice->to);
  boost::asio::write(guard, boost::asio::buffer(notice->text));
  EXPECT_TRUE(RunUntil(io_, [&] { return heard[0]->Heard("stop"); }));
  clients.clear();
}

TEST_F(SecureConnectionTest, WhoHasAnotherTokenHearsSoAndIsNotServed) {
  Serve(Credentials::FromToken(kToken, Role::kDaemon));
  EXPECT_THAT(Ask(Credentials::FromToken(Token::Random(), Role::kTool)),
              EndsWith(": it was started with another token than the one here, or the clocks of "
                       "the two machines differ by hours"));
}

TEST_F(SecureConnectionTest, WhoComesWithoutTheTokenHearsThatItIsAskedFor) {
  Serve(Credentials::FromToken(kToken, Role::kDaemon));
  EXPECT_THAT(Ask(Credentials::Plaintext()),
              EndsWith(": it requires the token that it was started with"));
}

// A web server at the endpoint was told to be a Muster without a token, or one that asks for a
// token; and so was Muster's own --http.
TEST_F(SecureConnectionTest, AnotherProgramIsNamedByWhatItSpeaks) {
  tcp::acceptor acceptor(io_, {boost::asio::ip::make_address("127.0.0.1"), 0});
  std::string says;
  std::function<void()> accept = [&] {
    acceptor.async_accept([&](const boost::system::error_code& error, tcp::socket peer) {
      if (error) return;
      const auto shared = std::make_shared<tcp::socket>(std::move(peer));
      const auto buffer = std::make_shared<std::string>(512, '\0');
      shared->async_read_some(
          boost::asio::buffer(*buffer),
          [&says, shared, buffer](const boost::system::error_code&, std::size_t) {
            boost::system::error_code ignored;
            boost::asio::write(*shared, boost::asio::buffer(says), ignored);
          });
      accept();
    });
  };
  accept();
  const auto ask = [&](const Credentials& credentials) {
    const DaemonOptions daemon{.endpoint = {"127.0.0.1", acceptor.local_endpoint().port()},
                               .credentials = credentials};
    return Meanwhile<std::string>(
        [daemon] { return std::string(ListJobs(daemon).status().message()); });
  };
  says = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
  for (const Credentials& credentials :
       {Credentials::Plaintext(), Credentials::FromToken(kToken, Role::kTool)}) {
    EXPECT_THAT(ask(credentials),
                EndsWith(": what answers there is not a Muster rendezvous: it speaks HTTP, as a "
                         "web server does and the page of a Muster (--http); choose another port, "
                         "or stop the process using this one"));
  }
  says = "SSH-2.0-OpenSSH_9.2p1\r\n";
  EXPECT_THAT(ask(Credentials::FromToken(kToken, Role::kTool)),
              testing::HasSubstr("not a Muster rendezvous: it speaks SSH"));
  acceptor.close();
}

TEST_F(SecureConnectionTest, WhoBringsATokenThatNobodyAsksForHearsThat) {
  Serve(Credentials::Plaintext());
  EXPECT_THAT(Ask(Credentials::FromToken(kToken, Role::kTool)),
              EndsWith(": it was started without a token; start it with the one here, or use none "
                       "here either (--insecure)"));
  EXPECT_EQ(Ask(Credentials::Plaintext()), "") << "and others are served as before";
}

// An agent would try for a minute otherwise, and say at the end what it knew at the beginning.
TEST_F(SecureConnectionTest, AnAgentWithAnotherTokenGivesUpAtOnce) {
  Serve(Credentials::FromToken(kToken, Role::kDaemon));
  RecordingListener heard;
  const auto agent =
      MakeGrpcClient(io_,
                     {.endpoint = {"127.0.0.1", server_->port()},
                      .credentials = Credentials::FromToken(Token::Random(), Role::kAgent),
                      .connect_timeout = std::chrono::hours(1)},
                     heard);
  agent->Join(RequestFor(1, 1));
  EXPECT_TRUE(RunUntil(io_, [&] { return heard.Heard("lost"); }));
  EXPECT_THAT(heard.log.back(), testing::HasSubstr("it was started with another token"));
}

TEST_F(SecureConnectionTest, OnlyTls13WithACertificateOfTheTokensIsSpoken) {
  Serve(Credentials::FromToken(kToken, Role::kDaemon));
  const Authority own(kToken), foreign(Token::Random());
  const absl::Time now = absl::Now();
  const auto with = [&](const std::optional<Identity>& identity) {
    return Handshake(TLS1_VERSION, TLS1_3_VERSION, identity);
  };
  EXPECT_EQ(with(own.Issue(Role::kAgent, now)), "TLSv1.3, served");
  EXPECT_EQ(with(std::nullopt), "TLSv1.3, turned away");
  EXPECT_EQ(with(foreign.Issue(Role::kAgent, now)), "TLSv1.3, turned away");
  EXPECT_EQ(with(own.Issue(Role::kAgent, now - absl::Hours(48))), "TLSv1.3, turned away")
      << "expired";
  EXPECT_EQ(with(own.Issue(Role::kAgent, now + absl::Hours(48))), "TLSv1.3, turned away")
      << "not yet valid";
  EXPECT_EQ(with(own.Issue(Role::kDaemon, now)), "TLSv1.3, turned away") << "a server's";
  for (const int version : {TLS1_VERSION, TLS1_1_VERSION, TLS1_2_VERSION}) {
    EXPECT_EQ(Handshake(version, version, own.Issue(Role::kAgent, now)), "no handshake") << version;
  }
}

// A browser, a port scanner, a health check of some load balancer.
TEST_F(SecureConnectionTest, WhoSpeaksPlainHttpReadsWhatIsServedHere) {
  Serve(Credentials::FromToken(kToken, Role::kDaemon));
  const std::uint16_t port = server_->port();
  const std::string answer = Meanwhile<std::string>([port] {
    boost::asio::io_context io;
    tcp::socket socket(io);
    socket.connect({boost::asio::ip::make_address("127.0.0.1"), port});
    boost::asio::write(socket, boost::asio::buffer("POST / HTTP/1.1\r\nHost: x\r\n\r\n", 29));
    std::string text(4096, '\0');
    boost::system::error_code end;
    text.resize(boost::asio::read(socket, boost::asio::buffer(text), end));
    return text + "|" + end.message();
  });
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 426 Upgrade Required\r\n"));
  EXPECT_THAT(answer, EndsWith("It speaks TLS with a token.\n|End of file"));
}

// Certificates of a site's own authority.
class SiteConnectionTest : public SecureConnectionTest {
 protected:
  // Files of a new end with a certificate for these names.
  Credentials Issue(const test::SiteAuthority& authority, const char* names) {
    const std::string folder = dir_.Path(std::to_string(++issued_));
    std::filesystem::create_directory(folder);
    const CertificateFiles files = {folder + "/ca", folder + "/cert", folder + "/key"};
    Renew(files, authority, names);
    const auto site = SiteCertificates::Load(files);
    EXPECT_TRUE(site.ok()) << site.status();
    last_ = files;
    return Credentials::FromSite(*site);
  }
  static void Renew(const CertificateFiles& files, const test::SiteAuthority& authority,
                    const char* names) {
    const auto leaf = authority.Issue(names);
    for (const auto& [file, text] : {std::pair(files.ca, authority.certificate()),
                                     {files.certificate, leaf.certificate},
                                     {files.key, leaf.key}}) {
      std::filesystem::remove(file);
      std::ofstream(file) << text;
      std::filesystem::permissions(file, std::filesystem::perms(0600));
    }
  }

  const test::TempDir dir_;
  int issued_ = 0;
  CertificateFiles last_;
  const test::SiteAuthority site_{"site"};
  const test::SiteAuthority other_{"other"};
};

TEST_F(SiteConnectionTest, WhoHasOneOfTheSameAuthorityIsServedAndNobodyElse) {
  Serve(Issue(site_, "IP:127.0.0.1"));
  EXPECT_EQ(Ask(Issue(site_, "DNS:somewhere")), "");
  EXPECT_THAT(
      Ask(Issue(other_, "DNS:somewhere")),
      EndsWith("its certificate has expired, or was not issued by an authority in --tls-ca"));
  EXPECT_THAT(Ask(Credentials::FromToken(kToken, Role::kTool)), EndsWith("differ by hours"));
  EXPECT_THAT(Ask(Credentials::Plaintext()),
              EndsWith("it requires the token that it was started with"));
  EXPECT_EQ(Handshake(TLS1_3_VERSION, TLS1_3_VERSION, std::nullopt), "TLSv1.3, turned away");
}

TEST_F(SiteConnectionTest, ADaemonHasToBeWhoItWasCalled) {
  Serve(Issue(site_, "DNS:elsewhere"));
  EXPECT_THAT(Ask(Issue(site_, "DNS:somewhere")),
              EndsWith("its certificate is for a name other than the one it was contacted by"));
}

TEST_F(SiteConnectionTest, AgentsMeetAndComeBackByTheNameThatTheyWereGiven) {
  Serve(Issue(site_, "DNS:localhost"));
  RecordingListener heard;
  const auto agent = MakeGrpcClient(
      io_, {.endpoint = {"localhost", server_->port()}, .credentials = Issue(site_, "DNS:node1")},
      heard);
  agent->Join(RequestFor(1, 1));
  EXPECT_TRUE(RunUntil(io_, [&] { return heard.Last<Assignment>() != nullptr; }))
      << heard.log.size();
}

// "Our certificates live for a day, and every night the daemon had to be started again."
TEST_F(SiteConnectionTest, RenewedFilesAreReadWithoutANewStart) {
  Serve(Issue(site_, "IP:127.0.0.1"));
  const CertificateFiles daemons = last_;
  const Credentials tool = Issue(other_, "DNS:tool");
  const CertificateFiles tools = last_;
  EXPECT_NE(Ask(tool), "");
  Renew(daemons, other_, "IP:127.0.0.1");
  EXPECT_EQ(Ask(tool), "");
  Renew(daemons, site_, "IP:127.0.0.1");
  Renew(tools, site_, "DNS:tool");
  EXPECT_EQ(Ask(tool), "");
}

}  // namespace
}  // namespace muster::rendezvous

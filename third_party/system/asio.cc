// Boost.Asio, compiled once rather than in every unit that includes it.
#include <boost/asio/impl/src.hpp>

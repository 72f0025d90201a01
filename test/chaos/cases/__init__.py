"""The fault matrix. Importing this package registers every case."""

from cases import agents, daemon, join, journal, machine, network, outages, ranks  # noqa: F401

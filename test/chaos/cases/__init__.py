"""The fault matrix. Importing this package registers every case."""

from cases import agents, daemon, ends, join, journal, machine, network, outages, ranks, store  # noqa: F401

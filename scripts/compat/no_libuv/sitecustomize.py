"""Lets a PyTorch that was built without libuv be a client of the agent's store, by asking it not to use libuv.

PyTorch passes no use_libuv there, and its default is True since 2.4 (torch/distributed/rendezvous.py,
_create_c10d_store).
"""
import sys

import torch.distributed  # noqa: F401

_rendezvous = sys.modules["torch.distributed.rendezvous"]
_store = _rendezvous.TCPStore
_rendezvous.TCPStore = lambda *args, **kwargs: _store(*args, **{**kwargs, "use_libuv": False})

"""The Python side of interop_test and of scripts/compat/checkpoints26.sh.

interop.py write DIR      writes py_*.pt and py.safetensors, and prints what is in each
interop.py describe DIR   prints what torch.load finds in each ours_*.pt, and what is in ours.safetensors
interop.py start DIR      trains a few steps, saves py_run.pt, trains on and saves the outcome, py_outcome.pt
interop.py resume DIR     goes on from ours_run.pt and compares with py_outcome.pt
interop.py speed DIR      times torch.save and torch.load of 100 MB
"""
import collections
import json
import os
import struct
import sys
import time

import torch
from torch import nn

NEW = int(torch.__version__.split(".")[0]) >= 2


def load(path):
    # 1.13's loader for weights_only refuses floats; from 2.6 on it is the default.
    return torch.load(path, weights_only=True) if NEW else torch.load(path)


def describe(value):
    if isinstance(value, torch.Tensor):
        value = value.detach().contiguous()
        raw = value.reshape(-1).view(torch.uint8) if value.dtype != torch.bool else value.reshape(-1).to(torch.uint8)
        return f"{str(value.dtype)[6:]}[{','.join(map(str, value.shape))}]:{bytes(raw.tolist()).hex()}"
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return "f" + struct.pack(">d", value).hex()
    if isinstance(value, (str, torch.dtype, torch.device)):
        return f'"{value}"'
    if isinstance(value, (list, set)):
        return "[" + ",".join(map(describe, value)) + "]"
    if isinstance(value, tuple):
        return "(" + ",".join(map(describe, value)) + ")"
    if isinstance(value, dict):
        items = ",".join(f"{describe(k)}:{describe(v)}" for k, v in value.items())
        return ("O{" if isinstance(value, collections.OrderedDict) else "{") + items + "}"
    raise TypeError(type(value))


TYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
         "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool}


def read_safetensors(path):
    """What https://github.com/huggingface/safetensors says about the format, in a few lines."""
    data = open(path, "rb").read()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    metadata = header.pop("__metadata__", {})
    assert all(type(text) is str for text in metadata.values()), metadata
    metadata.pop("muster.checksum", None)
    assert metadata in ({}, {"format": "pt"}), metadata
    tensors, end = {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        first, last = entry["data_offsets"]
        dtype = TYPES[entry["dtype"]]
        assert first == end and (8 + size + first) % torch.empty(0, dtype=dtype).element_size() == 0, name
        end = last
        part = bytearray(data[8 + size + first:8 + size + last])
        flat = torch.frombuffer(part, dtype=dtype) if part else torch.empty(0, dtype=dtype)
        tensors[name] = flat.reshape(entry["shape"])
    assert end == len(data) - 8 - size
    return tensors


def write_safetensors(tensors, path):
    header, parts, end = {"__metadata__": {"format": "pt"}}, [], 0
    names = {dtype: name for name, dtype in TYPES.items()}
    for name, tensor in tensors.items():
        part = bytes.fromhex(describe(tensor).split(":")[1])
        header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [end, end + len(part)]}
        parts.append(part)
        end += len(part)
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def net():
    return nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.Linear(2, 2))


def run(model, optimizer, schedule, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.rand(4, 3)).pow(2).sum().backward()
        optimizer.step()
        schedule.step()


def start():
    torch.manual_seed(0)
    model = net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 4], 0.5)
    run(model, optimizer, schedule, 3)
    return model, optimizer, schedule


def checkpoint(model, optimizer, schedule):
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": schedule.state_dict(),
            "rng": torch.get_rng_state(), "step": 3, "accuracy": 0.5, "name": "x",
            "args": {"lr": 1e-3, "betas": (0.9, 0.999), "none": None, "flag": True}}


def write(folder):
    model, optimizer, schedule = start()
    state = model.state_dict()
    grid = torch.arange(12.0).view(3, 4)
    tensors = {"transposed": grid.t(), "row": grid[1:2], "column": grid[:, 1], "half": grid.half(),
               "bfloat16": grid.bfloat16(), "double": grid.double(), "long": torch.tensor(-3), "int": torch.tensor([1 << 30, 2]).int(),
               "short": torch.tensor([-5]).short(), "char": torch.tensor([-5]).char(), "byte": torch.tensor([200]).byte(),
               "bool": torch.tensor([True, False]), "scalar": torch.tensor(2.5), "empty": torch.zeros(0, 4),
               "images": torch.rand(1, 2, 3, 4).contiguous(memory_format=torch.channels_last)}
    values = {"none": None, "ints": [0, 255, 256, 65535, 65536, -1, -(1 << 31), 1 << 40, -(1 << 63), (1 << 63) - 1],
              "floats": [0.0, -0.0, 1e-300, float("inf")], "texts": ["", "Gr\u00fc\u00dfe", "a" * 300], "tuples": ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)),
              "size": torch.Size([1, 2]), "dtype": torch.bfloat16, "device": torch.device("cuda", 1), "cpu": torch.device("cpu"),
              "set": {7}, "counter": collections.Counter({5: 1}), 3: {"nested": [{}, [[]]]}, "shared": [state["0.bias"]] * 3}
    files = {"state_dict": state, "ordered": collections.OrderedDict(("module." + k, v) for k, v in state.items()),
             "parameter": {"w": model[0].weight, "buffer": nn.Parameter(torch.ones(2), requires_grad=False)},
             "checkpoint": checkpoint(model, optimizer, schedule), "tensors": tensors, "values": values,
             "tensor": grid, "list": [grid, grid], "empty": {}}
    lines = []
    for name, value in files.items():
        torch.save(value, f"{folder}/py_{name}.pt")
        lines.append(f"py_{name}.pt: {describe(value)}")
    write_safetensors(tensors, f"{folder}/py.safetensors")
    lines.append(f"py.safetensors: {describe(tensors)}")

    torch.save(state, f"{folder}/py_refused_legacy.pt", _use_new_zipfile_serialization=False)
    torch.jit.save(torch.jit.trace(model.eval(), torch.ones(1, 3)), f"{folder}/py_refused_script.pt")
    torch.save(model, f"{folder}/py_refused_module.pt")
    torch.save({"z": torch.ones(2, dtype=torch.complex64)}, f"{folder}/py_refused_complex.pt")
    torch.save({"e": torch.ones(1).expand(1000)}, f"{folder}/py_refused_expanded.pt")
    torch.save({"i": 1 << 70}, f"{folder}/py_refused_int.pt")
    torch.save({"i": 1}, f"{folder}/py_refused_protocol.pt", pickle_protocol=4)
    open(f"{folder}/py_refused_text.pt", "w").write("this is not a checkpoint\n")
    open(f"{folder}/py_refused_nothing.pt", "w").close()
    save = "save a state_dict(), and plain numbers, strings, lists and dicts"
    for name, why in {
            "legacy": "it is in the format of PyTorch before 1.6; load it in Python and save it with torch.save",
            "script": "it is a TorchScript program (torch.jit.save); save its state_dict() with torch.save",
            "module": f"it holds torch.nn.modules.container.Sequential, which is not read here; {save}",
            "complex": f"it holds torch.ComplexFloatStorage, which is not read here; {save}",
            "expanded": "its pickle is damaged: a tensor has more elements than its storage (expand())",
            "int": "it holds an int of more than 64 bits",
            "protocol": "it is of pickle protocol 4; save it with torch.save's own, which is 2",
            "text": "it is not a file of torch.save",
            "nothing": "it is not a file of torch.save"}.items():
        lines.append(f"py_refused_{name}.pt: error: {why}")
    print("\n".join(sorted(lines)))


def describe_ours(folder):
    for name in sorted(os.listdir(folder)):
        if name.startswith("ours") and not name.endswith(".txt"):
            value = read_safetensors(f"{folder}/{name}") if name.endswith(".safetensors") else load(f"{folder}/{name}")
            print(f"{name}: {describe(value)}")


def resume(folder):
    saved = load(f"{folder}/ours_run.pt")
    model = net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.7)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [9], 0.7)
    print(model.load_state_dict(saved["model"]))
    optimizer.load_state_dict(saved["optimizer"])
    if not isinstance(saved["scheduler"]["milestones"], collections.Counter):
        saved["scheduler"]["milestones"] = collections.Counter(saved["scheduler"]["milestones"])
    schedule.load_state_dict(saved["scheduler"])
    torch.set_rng_state(saved["rng"])
    run(model, optimizer, schedule, 3)
    outcome = torch.load(f"{folder}/py_outcome.pt")
    print(describe(outcome) == describe(model.state_dict()))


def speed(folder):
    state = {f"layer{i}.weight": torch.rand(256, 1024) for i in range(100)}
    path = f"{folder}/py_speed.pt"

    def rate(action):
        times, busy = [], []
        for _ in range(7):
            begin, busy_begin = time.perf_counter(), time.process_time()
            action()
            times.append(time.perf_counter() - begin)
            busy.append(time.process_time() - busy_begin)
        return f"{104.8576 / sorted(times)[3]:.0f} MB/s ({104.8576 / sorted(busy)[3]:.0f} of processor time)"

    def save_and_sync():
        torch.save(state, path)
        fd = os.open(path, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)

    print(f"python {torch.__version__}: save {rate(lambda: torch.save(state, path))}, "
          f"save and fsync {rate(save_and_sync)}, load {rate(lambda: load(path))}")


def main(what, folder):
    if what == "write":
        write(folder)
    elif what == "describe":
        describe_ours(folder)
    elif what == "start":
        parts = start()
        torch.save(checkpoint(*parts), f"{folder}/py_run.pt")
        run(*parts, 3)
        torch.save(parts[0].state_dict(), f"{folder}/py_outcome.pt")
    elif what == "resume":
        resume(folder)
    elif what == "speed":
        speed(folder)


main(*sys.argv[1:])

"""How scripts hand tensors to tests: read by ReadTensors (test/trainer/models/python.h)."""
import torch

NAMES = {torch.float32: "float32", torch.float64: "float64", torch.int64: "int64"}


def write(path, named):
    """Writes (name, tensor) pairs: a line `name dtype sizes...`, then the numbers, row by row."""
    with open(path, "wb") as file:
        for name, tensor in named:
            header = [name, NAMES[tensor.dtype]] + [str(size) for size in tensor.shape]
            file.write((" ".join(header) + "\n").encode())
            file.write(tensor.detach().contiguous().numpy().tobytes())

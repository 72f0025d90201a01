"""An unmodified PyTorch script: a value of 16 MiB, which rank 0 sets in the store and all others get."""
import torch.distributed as dist

dist.init_process_group("gloo")
store = dist.distributed_c10d._get_default_store()
value = bytes(range(256)) * (16 << 12)
if dist.get_rank() == 0:
    store.set("large", value)
assert store.get("large") == value
print("rank %d of %d: %d MiB are right" % (dist.get_rank(), dist.get_world_size(), len(value) >> 20))
dist.barrier()
dist.destroy_process_group()

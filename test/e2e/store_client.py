"""A client of torch.distributed's store: PORT. Prints "ok" when every answer is the one that c10d's server gives."""
import datetime
import sys
import threading

import torch.distributed as dist


def connect(timeout_seconds=60):
    return dist.TCPStore(
        "127.0.0.1", int(sys.argv[1]), is_master=False, timeout=datetime.timedelta(seconds=timeout_seconds))


def expect(actual, expected):
    assert actual == expected, f"{actual!r}, not {expected!r}"


def expect_timeout(wait):
    try:
        wait()
    except RuntimeError as error:
        assert "imeout" in str(error), error
    else:
        raise AssertionError("it did not time out")


store = connect()

# Values, binary ones among them.
store.set("key", "value")
expect(store.get("key"), b"value")
store.set("key", b"\x00\xff\x80" * 1000)
expect(store.get("key"), b"\x00\xff\x80" * 1000)
store.set("large", "x" * (8 << 20))
expect(len(store.get("large")), 8 << 20)

# Numbers.
expect(store.add("counter", 5), 5)
expect(store.add("counter", -7), -2)
expect(store.get("counter"), b"-2")

# Compare and set: torchrun's rendezvous depends on these answers.
expect(store.compare_set("cas", "old", "new"), b"old")
expect(store.compare_set("cas", "", "first"), b"first")
expect(store.compare_set("cas", "first", "second"), b"second")
expect(store.compare_set("cas", "first", "third"), b"second")

# "init/" is a key too, which TCPStore's constructor may have made.
keys = store.num_keys()
expect(store.delete_key("cas"), True)
expect(store.delete_key("cas"), False)
expect(store.num_keys(), keys - 1)

# A waiting client is woken by another connection, or times out and continues as before.
other = connect()
waiter = threading.Thread(target=lambda: store.wait(["late", "later"]))
waiter.start()
other.set("late", "1")
other.add("later", 1)
waiter.join(60)
assert not waiter.is_alive()
for _ in range(3):
    expect_timeout(lambda: store.wait(["never"], datetime.timedelta(milliseconds=50)))
    expect(store.get("key"), b"\x00\xff\x80" * 1000)
other.set("never", "after all")
expect(store.get("never"), b"after all")

# The prefix of process groups.
prefixed = dist.PrefixStore("group", store)
prefixed.set("key", "its own")
expect(store.get("group/key"), b"its own")

# Missing in some versions.
if hasattr(store, "check"):
    expect(store.check(["key"]), True)
    expect(store.check(["key", "nobody"]), False)

if hasattr(store, "append"):
    store.append("log", "ab")
    store.append("log", "cd")
    store.multi_set(["m1", "m2"], ["1", "2"])
    expect(store.multi_get(["log", "m2"]), [b"abcd", b"2"])
if hasattr(store, "queue_push"):
    store.queue_push("queue", "1")
    expect(store.queue_len("queue"), 1)
    expect(other.queue_pop("queue"), b"1")
if hasattr(store, "list_keys"):
    assert "key" in store.list_keys()

print("ok")

#!/usr/bin/env python3
"""Makes the tokenizers of this folder, and what they make of texts. Needs the package `regex`.

usage: make.py DIRECTORY

A program of its own: it knows nothing of how Muster does it. Words are found by the regular expressions themselves, and
merged as slowly as the definition says: of all neighbours the pair that was learned first, the leftmost of equals, until
there is none. Written are gpt2.json and gpt4.json, small tokenizers in the JSON form of Hugging Face's tokenizers, and
beside each a .jsonl with a line for each text: {"text": ..., "tokens": [...]}.
"""
import collections
import json
import random
import sys

import regex

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
GPT4 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+")
MERGES = 220

CORPUS = """
Distributed training isn't hard when it's the launcher that does the work. We're told that they've seen it, that she'll
do it, that he'd done it and that I'm late; don't ask whose it was. "It was there," said the other one, "and then it
wasn't." In 1999 there were 20 of them, in 2024 there were 2024, and in 2026 it will be 65,536 or more (1,000,000?).

    for (int i = 0; i < 10; ++i) {
        total += values[i] * weights[i];  // the sum
    }

Die Züge fahren über die Brücke; für größere Städte wären mehr nötig. L'été, la forêt était très belle: ça va? Ça va!
Где поезд? Поезд на мосту, и поезд идет. 東京の電車は速いです。東京は大きい。 中文的句子没有空格。 😀😀 👍🏽 👍🏽 👨‍👩‍👧 ½ ² ٣
the the the and and then that there their they train training trainer trained
"""

ADDED = ["<|endoftext|>", "<|end", "<|end|>", "[  ]"]

TEXTS = [
    "", " ", "  ", "   a", "a   ", "Hello world", " Hello  world ", "the training of the trainer",
    "isn't it's I'm we're they've she'll he'd don't", "ISN'T IT'S I'M WE'RE THEY'VE SHE'LL HE'D", "'tis 'twas ''s '' 's's",
    "'", "''", "' s", " 's", "'r", "'re", "'l", "'v e", "it'\u017f", "IT'\u017f", "x'S y'Re",
    "2026 1999-2024 3.14159 1,000,000 65536x 12345678901", "\u00bd\u00b2\u0663\u0664 1\u00bd \u2167",
    "a, b; c: d! e? (f) [g] {h} \"i\" ... !!! ?!?! -- => ++i <<=", "e-mail@example.com https://example.com/a?b=c&d=%20",
    "line\nline\n\nline\n\n\nline", "a\r\nb\r\n\r\nc\rd", "tab\tseparated\t\tvalues\t", " \n ", "\n", "\n\n", " \n\n  x", "x \n",
    "    indented\n        more\n\n\n    back", "!\n\n\n", "!\r\n", " !\n x", "... \n\n",
    "caf\u00e9 cafe\u0301 na\u00efve Z\u00fcge gr\u00f6\u00dfere St\u00e4dte", "\u0413\u0434\u0435 \u043f\u043e\u0435\u0437\u0434?",
    "\u6771\u4eac\u306e\u96fb\u8eca\u306f\u901f\u3044\u3067\u3059\u3002", "\u4e2d\u6587\u7684\u53e5\u5b50\u3000\u6ca1\u6709\u7a7a\u683c",
    "\U0001f600 \U0001f600\U0001f600 \U0001f44d\U0001f3fd \U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001d54f\U0001d550 \U00020000",
    "a\u00a0b \u00a0c\u2003\u2003d\u2028e\u0085f\u3000g \u3000", "\u200b\u200c \ufeffBOM", "\x00\x01\x1c\x1d\x1e\x1f\x7f", "\x0b\x0c a",
    "\u0627\u0644\u0642\u0637\u0627\u0631 \u0633\u0631\u064a\u0639", "\u0930\u0947\u0932\u0917\u093e\u0921\u093c\u0940",
    "<|endoftext|>", "a<|endoftext|>b", "a <|endoftext|> b", "<|endoftext|><|endoftext|>", "<|end", "<|end|>", "<|endof",
    "<|endoftext|", "<|en", "<<|end|>>", "<|end<|end|>", "  <|endoftext|>  ", "\n<|endoftext|>\n", "[  ][ ][  ]", "it<|end's",
    "the" * 40, "a" * 100, " " * 70 + "x", "\n" * 33, "\U0001f600" * 20,
]


def bytes_to_unicode():
    """GPT-2's table, from its definition."""
    visible = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {b: chr(b) for b in visible}
    for b in range(256):
        table.setdefault(b, chr(256 + len(table) - len(visible)))
    return table


SYMBOL = bytes_to_unicode()


def symbols(text):
    return [SYMBOL[b] for b in text.encode()]


def learn(pattern):
    words = collections.Counter(regex.findall(pattern, CORPUS))
    parts = {word: symbols(word) for word in words}
    merges = []
    while len(merges) < MERGES:
        pairs = collections.Counter()
        for word, count in words.items():
            for pair in zip(parts[word], parts[word][1:]):
                pairs[pair] += count
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        for word in words:
            parts[word] = merged(parts[word], best)
    return merges


def merged(parts, pair):
    out = []
    for part in parts:
        if out and (out[-1], part) == pair:
            out[-1] += part
        else:
            out.append(part)
    return out


def encode_word(word, rank):
    parts = symbols(word)
    while True:
        ranked = [(rank[pair], i) for i, pair in enumerate(zip(parts, parts[1:])) if pair in rank]
        if not ranked:
            return parts
        _, i = min(ranked)
        parts[i:i + 2] = [parts[i] + parts[i + 1]]


def encode(text, pattern, vocab, rank, whole_words):
    tokens = []
    # Alternatives are tried in order: longer ones first.
    added = "|".join(regex.escape(token) for token in sorted(ADDED, key=len, reverse=True))
    for piece in regex.split("(" + added + ")", text):
        if piece in ADDED:
            tokens.append(vocab[piece])
            continue
        words = regex.findall(pattern, piece)
        assert "".join(words) == piece
        for word in words:
            whole = "".join(symbols(word))
            parts = [whole] if whole_words and whole in vocab else encode_word(word, rank)
            tokens += [vocab[part] for part in parts]
    return tokens


def soup(count):
    """Texts of parts of the others, in any order."""
    random.seed(1)
    parts = [part for text in TEXTS for part in regex.findall(r"\X{1,3}", text)]
    return ["".join(random.choices(parts, k=random.randint(2, 30))) for _ in range(count)]


def main(directory):
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    split = {"type": "Split", "pattern": {"Regex": GPT4}, "behavior": "Isolated", "invert": False}
    kinds = {
        "gpt2": (GPT2, byte_level, False),
        "gpt4": (GPT4, {"type": "Sequence", "pretokenizers": [split, {**byte_level, "use_regex": False}]}, True),
    }
    for name, (pattern, pre_tokenizer, newer) in kinds.items():
        merges = learn(pattern)
        rank = {pair: i for i, pair in enumerate(merges)}
        # Bytes in an order of their own, as in GPT-2: those that are visible first.
        tokens = sorted(SYMBOL.values()) + ["".join(pair) for pair in merges]
        if newer:
            tokens.append("\u0120nightingale")  # no merges make it
        vocab = {token: i for i, token in enumerate(tokens)}
        added = [{"id": len(vocab) + i, "content": token, "single_word": False, "lstrip": False, "rstrip": False,
                  "normalized": i % 2 == 1, "special": i < 2} for i, token in enumerate(ADDED)]
        model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None if newer else "",
                 "end_of_word_suffix": None if newer else "", "fuse_unk": False, "byte_fallback": False,
                 "ignore_merges": newer, "vocab": vocab, "merges": merges if newer else [" ".join(pair) for pair in merges]}
        if not newer:  # as GPT-2's own file has it
            for later in ("type", "byte_fallback", "ignore_merges"):
                del model[later]
        file = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
                "pre_tokenizer": pre_tokenizer, "post_processor": byte_level, "decoder": byte_level, "model": model}
        with open(f"{directory}/{name}.json", "w", encoding="utf-8") as out:
            json.dump(file, out, ensure_ascii=False)
            out.write("\n")
        vocab = {**vocab, **{token["content"]: token["id"] for token in added}}
        with open(f"{directory}/{name}.jsonl", "w", encoding="utf-8") as out:
            for text in TEXTS + [" nightingale nightingales", CORPUS] + soup(150):
                found = encode(text, pattern, vocab, rank, newer)
                out.write(json.dumps({"text": text, "tokens": found}, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])

"""The cases that every run of the tests goes through once: `--subset ci`. Together they take under five minutes."""

CI_CASES = [
    "F1", "F2", "F2-segv", "F2-oom", "F5", "F6", "F7", "F8", "F9", "F10", "F12", "F16", "F20", "F22", "F28", "F31",
    "F32", "F33", "F36", "F37", "F39", "F41", "F42", "F43", "F44", "F45", "F48",
]

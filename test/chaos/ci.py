"""The cases that every run of the tests goes through once: `--subset ci`. Together they take under five minutes."""

CI_CASES = [
    "F1", "F2", "F2-segv", "F2-oom", "F3", "F4", "F5", "F6", "F7", "F8", "F9", "F10", "F11", "F12", "F13", "F14", "F15",
    "F16", "F17", "F20", "F22", "F24", "F25", "F26", "F26-flip", "F27", "F28", "F29", "F31", "F32", "F33", "F36", "F37",
    "F37-state", "F38", "F39", "F40", "F41", "F42", "F43", "F44", "F45", "F48", "F49", "F50", "F50-failed", "F51",
    "F52", "F52-host", "F53", "F53-state", "F54", "F55", "F56", "F57", "F58", "F58-silent",
]

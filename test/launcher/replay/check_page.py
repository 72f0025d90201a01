"""Whether a page of `muster replay` is what it must be: well-formed, sealed by its own policy, text where logs speak."""

import base64
import hashlib
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

VOID = {"meta", "br", "hr", "img", "input", "link"}
# The elements of our page. Anything else in it came from a log.
ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "p", "span", "div", "table", "thead", "tbody",
    "tr", "th", "td", "button", "svg", "rect", "ul", "li", "script", "noscript",
}


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict]] = []
        self.content: list[tuple[str, dict, str]] = []
        self.text = ""
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list) -> None:
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        if tag not in ALLOWED:
            self.faults.append(f"<{tag}> is none of the page's own")
        for name, value in attributes.items():
            if name.startswith("on") or name in ("style", "src", "href"):
                self.faults.append(f"<{tag}> has {name}={value}")
        if len(attributes) != len(attrs):
            self.faults.append(f"<{tag}> has an attribute twice")
        if tag not in VOID:
            self.open.append(tag)
            self.content.append((tag, attributes, ""))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> ends nothing")

    def handle_comment(self, data: str) -> None:
        self.faults.append(f"there is a comment: {data[:40]}")

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("script", "style"):
            tag, attributes, text = self.content[-1]
            self.content[-1] = (tag, attributes, text + data)
        else:
            self.text += data


def policy_hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def main() -> None:
    source = Path(sys.argv[1]).read_text(encoding="utf-8")
    page = Page()
    page.feed(source)
    page.close()
    faults = page.faults + [f"<{tag}> is not closed" for tag in page.open]

    policies = [a["content"] for tag, a in page.tags if tag == "meta" and a.get("http-equiv") == "Content-Security-Policy"]
    directives = dict(part.strip().split(" ", 1) for part in policies[0].split(";")) if len(policies) == 1 else {}
    if directives.get("default-src") != "'none'":
        faults.append(f"the policy allows what it does not name: {policies}")
    styles = [text for tag, _, text in page.content if tag == "style"]
    scripts = [text for tag, a, text in page.content if tag == "script" and "type" not in a]
    for name, contents in (("style-src", styles), ("script-src", scripts)):
        if len(contents) != 1 or directives.get(name) != policy_hash(contents[0]):
            faults.append(f"{name} is {directives.get(name)}, and there are {len(contents)} of them")

    data = [json.loads(text) for tag, a, text in page.content if tag == "script" and a.get("type") == "application/json"]
    if len(data) != 1:
        faults.append(f"there are {len(data)} pieces of data")
    else:
        rounds = [a for tag, a in page.tags if tag == "button" and a.get("class") == "round"]
        if len(rounds) != len(data[0]["rounds"]) or not rounds:
            faults.append("not each round has a button")
        for shown in data[0]["rounds"]:
            if len(shown["states"]) != len(data[0]["layouts"][shown["layout"]]):
                faults.append(f"round {shown['number']} has not a state for each node")
    ids = [a["id"] for _, a in page.tags if "id" in a]
    asked = re.findall(r'getElementById\("([^"]+)"\)', scripts[0] if scripts else "")
    faults += [f"there is no element {name}" for name in asked if ids.count(name) != 1]
    # No URLs apart from namespaces' names.
    if re.search(r"https?:|//[a-z]|@import|url\(", source):
        faults.append("the page names another place")
    if "ended by" not in page.text or "goodput" not in page.text:
        faults.append("the page does not say what happened")
    for fault in faults:
        print(f"{sys.argv[1]}: {fault}")
    sys.exit(1 if faults else 0)


main()

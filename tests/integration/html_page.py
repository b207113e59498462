"""The parts of an HTML page."""
import html.parser


class Page(html.parser.HTMLParser):
    """Elements left open, ids, targets, scripts, tags, inline styles, attributes."""

    VOID = ("meta", "br", "input")

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.hrefs, self.styles = [], [], [], []
        self.sources = []
        self.tags, self.attributes = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes.update(k for k, _ in attrs)
        self.ids += [v for k, v in attrs if k == "id"]
        self.hrefs += [v for k, v in attrs if k in ("href", "src", "action")]
        self.sources += [v for k, v in attrs if k == "src"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, "</%s> at %s" % (tag, self.getpos())

    def handle_data(self, data):
        if self.open and self.open[-1] == "style":
            self.styles.append(data)

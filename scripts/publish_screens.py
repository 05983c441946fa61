"""What scripts/publish takes as the program wrote it: parts of its screens and reports."""

from publish_tables import CannotPublish


def console(screen):
    """The table of cells as it stands on the screen, without what is above and below it."""
    tables = [text for text in screen.split("\n\n") if text.split("\n", 2)[1:2] and text.split("\n")[1].startswith("mask ")]
    if len(tables) != 1:
        raise CannotPublish(f"the screen has {len(tables)} tables of cells: name the axes in which they differ")
    return f"```\n{tables[0]}\n```\n"


def summary(screen):
    """How each kernel (over ranks: scheme) does over all problems, as it stands on the screen."""
    summaries = [text for text in screen.rstrip("\n").split("\n\n") if text.split("\n")[-1].startswith("first: ")]
    if len(summaries) != 1:
        raise CannotPublish(f"the screen has {len(summaries)} summaries: one needs several kernels, problems and one device")
    return f"```\n{summaries[0]}\n```\n"


def beside_dense(report):
    """Block-sparse cells beside dense ones, for each mask and pass, as `longca report --md` has them."""
    sections = [section for section in report.split("\n## ") if section.startswith("Block-sparse attention beside dense\n")]
    if len(sections) != 1:
        raise CannotPublish("the records have no block-sparse cells beside dense ones")
    parts = [part.split("\n\n", 1) for part in sections[0].split("\n### ")[1:]]
    return "\n".join(f"{title}:\n\n{text.strip()}\n" for title, text in parts)


def answer(screen, paragraphs=None):
    """The ranked choices of `longca advise`, without the list of files that they rest on, or the first paragraphs of it."""
    text = screen.split(chr(10) + 'from the records in' + chr(10))[0].strip()
    if paragraphs is not None:
        text = "\n\n".join(text.split("\n\n")[: int(paragraphs)])
    return f"```\n{text}\n```\n"


# Of what `longca report` prints.
SCREENS = {"console": console, "summary": summary}
# Of what `longca report --md` writes.
REPORTS = {"beside_dense": beside_dense}
# Of what `longca advise` prints.
ANSWERS = {"answer": answer}

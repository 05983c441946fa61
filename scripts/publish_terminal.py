"""The picture of a terminal in which commands were run, and the commands to copy."""

import html
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile

from publish_tables import CannotPublish

PROGRAM = "./longca"
VIEWERS = ("cat", "head")  # what else may be run: they show a file that is given
COLUMNS = 100
CUT = "…"
# What separates the parts of a long line, how much of it a new row replaces, and how far that row is indented: a table is
# broken between columns and goes on below its third one, any other line between words.
BREAKS = ((r" {2,}", 2, 20), (r" ", 1, 4))
COMMAND_INDENT = 4
# Pixels: the font, its line and character, the window's margin and its title bar.
FONT, LINE, CHARACTER, MARGIN, BAR = 14, 20, 8.43, 18, 34
BACKGROUND, TITLE_BAR, TITLE, PLAIN, STRONG, PROMPT = "#1d2330", "#2f3747", "#a9b2c3", "#d5dae3", "#ffffff", "#7fd48f"
BUTTONS = ("#ff5f57", "#febc2e", "#28c840")


def commands_of(text):
    """Commands are separated by semicolons."""
    found = [command.strip() for command in text.split(";") if command.strip()]
    if not found:
        raise CannotPublish("a terminal needs commands=")
    return found


def arguments_of(command, program):
    name, *arguments = shlex.split(command)
    if name != PROGRAM and name not in VIEWERS:
        raise CannotPublish(f"a terminal runs {PROGRAM}, {' and '.join(VIEWERS)}, not '{name}'")
    return [program if name == PROGRAM else name, *arguments]


def outputs(commands, program, files, root):
    """What each command prints in a folder that has nothing but `files` of `root`, at the same paths."""
    printed = []
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            to = pathlib.Path(folder) / file
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / file, to)
        for command in commands:
            done = subprocess.run(arguments_of(command, program), cwd=folder, capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, env={**os.environ, "COLUMNS": str(COLUMNS)})
            if done.returncode != 0:
                raise CannotPublish(done.stderr.strip() or f"{command} ended with {done.returncode}")
            if folder in done.stdout or str(root) in done.stdout:
                raise CannotPublish(f"{command} prints a path of this machine")
            printed.append(done.stdout)
    return printed


def cut(row):
    return row if len(row) <= COLUMNS else row[:COLUMNS - 1] + CUT


def rows_of(line):
    """A line of output in one row or two; what a second one has no space for is cut."""
    line = line.rstrip()
    if len(line) <= COLUMNS:
        return [line]
    for separator, replaced, indent in BREAKS:
        ends = [gap.start() for gap in re.finditer(separator, line) if COLUMNS / 2 < gap.start() <= COLUMNS]
        if ends:
            return [line[:ends[-1]], cut(" " * indent + line[ends[-1] + replaced:])]
    return [cut(line)]


def command_rows(command, columns=COLUMNS - len("$ ")):
    """A command in as many rows as it needs, continued before options as a shell understands it."""
    first, *options = re.split(r" (?=-)", command)
    rows = [first]
    for option in options:
        if len(rows[-1]) + len(option) + len("  \\") <= columns:
            rows[-1] += f" {option}"
        else:
            rows[-1] += " \\"
            rows.append(" " * COMMAND_INDENT + option)
    return rows


def to_copy(commands):
    return "```sh\n" + "".join(row + "\n" for command in commands for row in command_rows(command)) + "```\n"


def text(words, column, y, colour=PLAIN, more=""):
    """Words from a column on. Their width is said, so that any font keeps to the columns."""
    x = MARGIN + CHARACTER * column
    return (f'<text x="{x:.2f}" y="{y}" fill="{colour}" textLength="{CHARACTER * len(words):.2f}" '
            f'lengthAdjust="spacingAndGlyphs"{more}>{html.escape(words, quote=False)}</text>')


def row_text(row, y, colour, more=""):
    """A row in pieces, since viewers disagree on several blanks in one."""
    return [text(found.group(), found.start(), y, colour, more) for found in re.finditer(r"\S+(?: \S+)*", row)]


def screen(commands, printed):
    """Rows as (text, is it a command, is it strong): an answer of the program begins with a strong line, which goes on in
    rows further in."""
    for command, output in zip(commands, printed):
        for i, row in enumerate(command_rows(command)):
            yield ("$ " if i == 0 else "  ") + row, True, True
        is_strong = command.startswith(PROGRAM)
        for i, line in enumerate(output.rstrip("\n").split("\n")):
            is_strong = is_strong and (i == 0 or line.startswith("  "))
            yield from ((row, False, is_strong) for row in rows_of(line))
        yield "", False, False


def picture(commands, printed):
    """An SVG of a terminal's window."""
    drawn, y = [], BAR + MARGIN // 2
    for row, is_command, is_strong in screen(commands, printed):
        y += LINE
        bold = ' font-weight="bold"' if is_strong else ""
        if is_command and row.startswith("$"):
            drawn.append(text("$", 0, y, PROMPT, bold))
            row = " " + row[1:]
        drawn += row_text(row, y, STRONG if is_strong else PLAIN, bold)
    width, height = round(2 * MARGIN + CHARACTER * COLUMNS), y + LINE
    drawn.append(text("$", 0, y, PROMPT, ' font-weight="bold"'))
    buttons = [f'<circle cx="{MARGIN + 4 + 20 * i}" cy="{BAR // 2}" r="6" fill="{fill}"/>' for i, fill in enumerate(BUTTONS)]
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="ui-monospace, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="{FONT}">',
        f'<rect width="{width}" height="{height}" rx="8" fill="{BACKGROUND}"/>',
        f'<path d="M0 {BAR}V8a8 8 0 0 1 8-8H{width - 8}a8 8 0 0 1 8 8V{BAR}z" fill="{TITLE_BAR}"/>', *buttons,
        f'<text x="{width / 2:.1f}" y="{BAR // 2 + 5}" fill="{TITLE}" text-anchor="middle">longca</text>',
        *drawn, "</svg>", ""])

// The prose of a Markdown file, line by line, for the checks beside this file. In: the text. Out: a record
// for each line outside of code blocks: { kind, line, text, width }, lines from 1.

/** `width` is 0 for lines that cannot be wrapped: tables, headings and lines with a link. */
export function markdown(text) {
  let inCode = false;
  return text.split("\n").flatMap((line, i) => {
    if (/^\s*(```|~~~)/.test(line)) {
      inCode = !inCode;
      return [];
    }
    if (inCode) return [];
    const fixed = /^\s*\|/.test(line) || /\]\([^)]*\)|https?:\/\//.test(line) || line.startsWith("#");
    return [{ kind: "prose", line: i + 1, text: line, width: fixed ? 0 : line.length }];
  });
}

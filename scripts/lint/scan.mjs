// Finds the comments and the string literals of a TypeScript or JavaScript file, for the checks beside this
// file. In: the text of a file. Out: one record for each line of a comment or string: { kind, line, text },
// lines from 1. It is a scanner, not a parser: whether a slash divides or opens a regular expression
// it decides by what comes before.

/** What a slash can follow when it opens a regular expression. */
const BEFORE_REGEX = /(?:^|[=(,:[!&|?{};+\-*%<>~^]|\b(?:return|typeof|case|in|of|await|yield|void|throw))$/;

/** The comments and strings of `text`, line by line. */
export function scan(text) {
  const found = [];
  let line = 1;
  let code = ""; // the code since the last line break, to tell a division from a regular expression
  const note = (kind, from, to) => {
    for (const part of text.slice(from, to).split("\n")) found.push({ kind, line: line++, text: part });
    line--;
  };
  const templates = []; // how many braces are open in each `${` that we are inside
  let at = 0;
  const literal = (kind, end) => {
    note(kind, at, end);
    code += '"';
    at = end;
  };
  while (at < text.length) {
    const two = text.slice(at, at + 2);
    const one = text[at];
    if (two === "//" || (two === "#!" && at === 0)) {
      const end = indexOr(text, "\n", at);
      note("comment", at, end);
      at = end;
    } else if (two === "/*") {
      const end = indexOr(text, "*/", at + 2) + 2;
      note("comment", at, end);
      at = end;
    } else if (one === '"' || one === "'") literal("string", endOfString(text, at));
    else if (one === "`" || (one === "}" && templates.at(-1) === 0)) {
      if (one === "}") templates.pop();
      const end = endOfTemplate(text, at + 1);
      if (text[end - 1] === "{") templates.push(0);
      literal("string", end);
      if (text[end - 1] === "{") code = ""; // an expression starts
    } else if (one === "/" && BEFORE_REGEX.test(code.trimEnd())) {
      at = endOfRegex(text, at);
      code += '"';
    } else {
      if (one === "{" && templates.length > 0) templates[templates.length - 1]++;
      if (one === "}" && templates.length > 0) templates[templates.length - 1]--;
      if (one === "\n") line++;
      code = one === "\n" ? code.trimEnd().slice(-12) : code + one;
      at++;
    }
  }
  return found;
}

function indexOr(text, what, from) {
  const at = text.indexOf(what, from);
  return at < 0 ? text.length : at;
}

function endOfString(text, start) {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === text[start] || text[at] === "\n") return at + 1;
  }
  return text.length;
}

/** Behind the closing backtick, or behind the `${` of the next expression. */
function endOfTemplate(text, start) {
  for (let at = start; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === "`") return at + 1;
    else if (text[at] === "$" && text[at + 1] === "{") return at + 2;
  }
  return text.length;
}

function endOfRegex(text, start) {
  let inClass = false;
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === "[") inClass = true;
    else if (text[at] === "]") inClass = false;
    else if (text[at] === "\n" || (text[at] === "/" && !inClass)) return at + 1;
  }
  return text.length;
}

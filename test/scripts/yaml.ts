// Reads the part of YAML that the workflows use: maps, lists, plain and quoted scalars, lists in brackets,
// comments. Anything else is an error with its line, so that a workflow stays as simple
// as this. In: text. Out: a value.

export type Yaml = string | null | Yaml[] | { [key: string]: Yaml };

interface Line {
  readonly at: number;
  indent: number;
  text: string;
}

export function parseYaml(source: string): Yaml {
  const lines: Line[] = source.split("\n").flatMap((raw, i) => {
    if (raw.includes("\t")) throw new Error(`line ${i + 1}: a tab`);
    const text = raw.replace(/(^|\s)#.*$/, "").trimEnd();
    return text.trim() === "" ? [] : [{ at: i + 1, indent: text.search(/\S/), text: text.trim() }];
  });
  const value = block(lines, lines[0]?.indent ?? 0);
  if (lines[0] !== undefined) throw new Error(`line ${lines[0].at}: not expected at this indentation`);
  return value;
}

/** Takes the lines of one map or list, all at `indent`, from the front. */
function block(lines: Line[], indent: number): Yaml {
  const list: Yaml[] = [];
  const map = new Map<string, Yaml>();
  for (let line = lines[0]; line !== undefined && line.indent === indent; line = lines[0]) {
    if (line.text.startsWith("- ")) {
      // what follows the dash is the first line of a block that is two columns further in
      line.text = line.text.slice(2);
      line.indent += 2;
      list.push(/^[\w-]+:(\s|$)/.test(line.text) ? block(lines, line.indent) : scalar(take(lines)));
      continue;
    }
    const [, key, rest] = /^([\w-]+):(?:\s+(.*))?$/.exec(line.text) ?? [];
    if (key === undefined) throw new Error(`line ${line.at}: neither a key nor an entry: ${line.text}`);
    if (map.has(key)) throw new Error(`line ${line.at}: ${key} a second time`);
    lines.shift();
    const next = lines[0];
    if (rest !== undefined) map.set(key, scalar({ ...line, text: rest }));
    else map.set(key, next !== undefined && next.indent > indent ? block(lines, next.indent) : null);
  }
  if (list.length > 0 && map.size > 0) throw new Error(`a list and a map at column ${indent}`);
  return list.length > 0 ? list : Object.fromEntries(map);
}

const take = (lines: Line[]): Line => lines.shift() as Line;

function scalar({ at, text }: Line): Yaml {
  const inner = /^\[(.*)\]$/.exec(text)?.[1];
  if (inner !== undefined)
    return inner.split(",").map((part) => scalar({ at, indent: 0, text: part.trim() }));
  if (/^["']/.test(text)) return text.slice(1, -1);
  if (/^[[{&*!|>%@`]/.test(text) || /:\s/.test(text))
    throw new Error(`line ${at}: not a plain scalar: ${text}`);
  return text;
}

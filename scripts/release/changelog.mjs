// Reads CHANGELOG.md and compares it with the version of package.json.
// In: the text and the version. Out: complaints. `publishing` asks for more:
// nothing may be left under Unreleased.

/** The sections: { title, date, body }, in the order of the file. */
export function sections(text) {
  const heads = [...text.matchAll(/^## \[([^\]]+)\](?: - (\S+))?$/gm)];
  return heads.map((head, i) => ({
    title: head[1],
    date: head[2],
    body: text.slice(head.index + head[0].length, heads[i + 1]?.index).trim(),
  }));
}

export function checkChangelog(text, version, publishing = false) {
  const [unreleased, latest, ...older] = sections(text);
  if (unreleased?.title !== "Unreleased") return ["CHANGELOG.md must start with a section [Unreleased]"];
  if (latest === undefined) return [`CHANGELOG.md has no section [${version}]`];
  const complaints = [];
  if (latest.title !== version) {
    complaints.push(`package.json says ${version}, the newest section of CHANGELOG.md is [${latest.title}]`);
  }
  for (const { title, date, body } of [latest, ...older]) {
    if (!/^\d{4}-\d\d-\d\d$/.test(date ?? ""))
      complaints.push(`[${title}] needs a date: ## [${title}] - 2030-01-31`);
    if (body === "") complaints.push(`[${title}] is empty`);
  }
  if (publishing && unreleased.body !== "") {
    complaints.push("[Unreleased] is not empty: move its entries to a section with the new version");
  }
  return complaints;
}

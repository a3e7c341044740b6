// Whether this process may publish. Provenance ties the package to a commit and a build that anybody can look
// at, and only the CI of a public forge can sign that. In: the environment and package.json. Out: complaints.

export function checkForge(env, manifest) {
  if (env.GITHUB_ACTIONS !== "true" || !env.ACTIONS_ID_TOKEN_REQUEST_URL) {
    return ["only CI with an id-token may publish: push a tag, and .github/workflows/release.yml does it"];
  }
  const complaints = [];
  if (env.GITHUB_REF_NAME !== `v${manifest.version}`) {
    complaints.push(`the tag is ${env.GITHUB_REF_NAME}, package.json says ${manifest.version}`);
  }
  const url = manifest.repository?.url ?? manifest.repository;
  const own = `${env.GITHUB_SERVER_URL}/${env.GITHUB_REPOSITORY}`;
  if (url === undefined) {
    complaints.push("package.json needs a `repository`: provenance is checked against it");
  } else if (url.replace(/^git\+/, "").replace(/\.git$/, "") !== own) {
    complaints.push(`package.json says that the repository is ${url}, and this is ${own}`);
  }
  return complaints;
}

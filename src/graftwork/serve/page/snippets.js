// What is in the form as a command or a program. The token stays out of it: both read the variable TOKEN.

const URL_OF = () => new URL("v1/predict", document.baseURI).href;

/** For a POSIX shell. */
export function asCurl(body) {
  const quoted = JSON.stringify(body).replaceAll("'", "'\\''");
  return `curl ${URL_OF()} -H "Authorization: Bearer $TOKEN" \\\n`
    + `  -H "Content-Type: application/json" -d '${quoted}'`;
}

/** For Python, where nothing has to be installed. JSON of texts and lists is Python too. */
export function asPython(body) {
  return `import json, os
from urllib.request import Request, urlopen

body = ${JSON.stringify(body)}
headers = {"Authorization": "Bearer " + os.environ["TOKEN"], "Content-Type": "application/json"}
with urlopen(Request(${JSON.stringify(URL_OF())}, json.dumps(body).encode(), headers)) as response:
    print(json.load(response)["rows"][0]["answers"])`;
}

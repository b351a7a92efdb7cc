// A Node program with `cocopt stream` as a subprocess. Requests are sent at once; answers come in the same order.
// node examples/stream_client.mjs [state file]
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const state = process.argv[2] ?? "stream-example.db";
const learner = 'algorithm = "clasp", set = {type = "Simplex", dim = 3}';
const child = spawn("cocopt", ["stream", "--state", state, "--learner", learner], {
  stdio: ["pipe", "pipe", "inherit"],
});

const waiting = [];
createInterface({ input: child.stdout }).on("line", (line) => {
  const { resolve, reject } = waiting.shift();
  const answer = JSON.parse(line);
  "error" in answer ? reject(new Error(answer.message)) : resolve(answer);
});

function call(request) {
  return new Promise((resolve, reject) => {
    waiting.push({ resolve, reject });
    child.stdin.write(JSON.stringify(request) + "\n");
  });
}

// Two visitors see an advertisement before either has reacted: both rounds are played, and feedback comes out of order.
const first = await call({ key: "page", play: true });
const second = await call({ key: "page", play: true });
const clicks = (...values) => ({ type: "Linear", c: values.map((value) => -value) });
await Promise.all([
  call({ key: "page", round: second.round, loss: clicks(0, 1, 0), constraint: null, id: `visit ${second.round}` }),
  call({ key: "page", round: first.round, loss: clicks(0, 1, 1), constraint: null, id: `visit ${first.round}` }),
]);
await call({ key: "page", forget: first.round });
await call({ key: "page", forget: second.round });
const next = await call({ key: "page" });
console.log(`round ${next.round}: show them ${next.action.map((share) => share.toFixed(2)).join(", ")} of the time`);
child.stdin.end();

// What a Node program does with the service: node-redis unchanged. Prints what it got as JSON, a line before and one after a pause.
import { once } from "node:events";
import { setTimeout } from "node:timers/promises";
import { createClient, ErrorReply } from "redis";

const [port, RESP, namespace, key] = process.argv.slice(2);
const client = await createClient({
  socket: { host: "127.0.0.1", port: Number(port), reconnectStrategy: 100 },
  RESP: Number(RESP),
  password: key,
}).on("error", () => {}).connect();

const first = await client.incr(namespace);
const row = await client.incrBy(namespace, 10);
const read = Number(await client.get(namespace));
const many = await Promise.all(Array.from({ length: 1000 }, () => client.incr(namespace)));
const pipeline = await client.multi().incr(namespace).ping().incr(namespace).execAsPipeline();
const atomic = await client.multi().incr(namespace).incr(namespace).exec();
const id = await client.sendCommand(["MINT", "sno"]);
const ids = await client.sendCommand(["MINT", "sno", "COUNT", "3"]);
const error = await client.set(namespace, "1").catch((error) => error);
const refused = error.message, is_typed = error instanceof ErrorReply;
console.log(JSON.stringify({ first, row, read, many, pipeline, atomic, id, ids, refused, is_typed }));

await once(process.stdin, "data");
let again;
for (let tries = 0; again === undefined; tries++) {
  again = await client.incr(namespace).catch(async (error) => {
    if (tries === 100) throw error;
    await setTimeout(100);
  });
}
console.log(JSON.stringify({ again }));
client.destroy();
process.stdin.destroy();

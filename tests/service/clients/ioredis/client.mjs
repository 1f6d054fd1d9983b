// What a Node program does with the service: ioredis unchanged. Prints what it got as JSON, a line before and one after a pause.
import { once } from "node:events";
import { setTimeout } from "node:timers/promises";
import { Redis, ReplyError } from "ioredis";

const [port, protocol, namespace, password] = process.argv.slice(2);
const client = new Redis({ host: "127.0.0.1", port: Number(port), password, protocol: Number(protocol) });
client.on("error", () => {});

const first = await client.incr(namespace);
const row = await client.incrby(namespace, 10);
const read = Number(await client.get(namespace));
const pipelined = client.pipeline();
for (let at = 0; at < 1000; at++) pipelined.incr(namespace);
const many = (await pipelined.exec()).map(([error, integer]) => error ?? integer);
const atomic = (await client.multi().incr(namespace).incr(namespace).exec()).map(([error, integer]) => error ?? integer);
const id = await client.call("MINT", "sno");
const ids = await client.call("MINT", "sno", "COUNT", 3);
const error = await client.set(namespace, "1").catch((error) => error);
const refused = error.message, is_typed = error instanceof ReplyError;
console.log(JSON.stringify({ first, row, read, many, atomic, id, ids, refused, is_typed }));

await once(process.stdin, "data");
let again;
for (let tries = 0; again === undefined; tries++) {
  again = await client.incr(namespace).catch(async (error) => {
    if (tries === 100) throw error;
    await setTimeout(100);
  });
}
console.log(JSON.stringify({ again }));
client.disconnect();
process.stdin.destroy();

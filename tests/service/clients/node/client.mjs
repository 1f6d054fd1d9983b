// What a Node program does with the service: node-redis unchanged. Prints what it got as one line of JSON.
import { createClient } from "redis";

const [port, RESP, namespace, key] = process.argv.slice(2);
const client = await createClient({
  socket: { host: "127.0.0.1", port: Number(port), reconnectStrategy: false },
  RESP: Number(RESP),
  password: key,
}).connect();

const first = await client.incr(namespace);
const row = await client.incrBy(namespace, 10);
const many = await Promise.all(Array.from({ length: 1000 }, () => client.incr(namespace)));
const pipeline = await client.multi().incr(namespace).ping().incr(namespace).execAsPipeline();
const atomic = await client.multi().incr(namespace).incr(namespace).exec();
const id = await client.sendCommand(["MINT", "sno"]);
const ids = await client.sendCommand(["MINT", "sno", "COUNT", "3"]);
const refused = await client.set(namespace, "1").catch((error) => error.message);
console.log(JSON.stringify({ first, row, many, pipeline, atomic, id, ids, refused }));
client.destroy();

<?php
// What a PHP program does with the service: phpredis unchanged. Prints what it got as JSON, a line before and one after a pause.
[, $port, , $namespace, $key] = $argv;
$client = new Redis();
$client->connect('127.0.0.1', (int) $port);
$client->auth($key);

$got = ['first' => $client->incr($namespace), 'row' => $client->incrBy($namespace, 10)];
$got['read'] = (int) $client->get($namespace);
foreach ([['many', Redis::PIPELINE, 1000], ['atomic', Redis::MULTI, 2]] as [$name, $mode, $count]) {
    $queue = $client->multi($mode);
    for ($at = 0; $at < $count; $at++) {
        $queue->incr($namespace);
    }
    $got[$name] = $queue->exec();
}
$got['id'] = $client->rawCommand('MINT', 'sno');
$got['ids'] = $client->rawCommand('MINT', 'sno', 'COUNT', '3');
// An error of this kind is no exception in phpredis: the call returns false, and the client keeps the message.
$got['is_typed'] = $client->set($namespace, '1') === false;
$got['refused'] = $client->getLastError();
echo json_encode($got), "\n";

fgets(STDIN);
for ($tries = 0; ; $tries++) {
    try {
        echo json_encode(['again' => $client->incr($namespace)]), "\n";
        break;
    } catch (RedisException $error) {
        if ($tries === 100) {
            throw $error;
        }
        usleep(100_000);
    }
}

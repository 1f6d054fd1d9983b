<?php
// What a PHP program does with the service: predis unchanged. Prints what it got as JSON, a line before and one after a pause.
error_reporting(E_ALL & ~E_DEPRECATED); // of this version of predis, in this version of PHP
require 'Predis/Autoloader.php';
Predis\Autoloader::register();
[, $port, , $namespace, $key] = $argv;
$client = new Predis\Client(['host' => '127.0.0.1', 'port' => (int) $port, 'password' => $key]);

$got = ['first' => $client->incr($namespace), 'row' => $client->incrby($namespace, 10)];
$got['read'] = (int) $client->get($namespace);
foreach ([['many', 'pipeline', 1000], ['atomic', 'transaction', 2]] as [$name, $mode, $count]) {
    $got[$name] = $client->$mode(function ($queue) use ($namespace, $count) {
        for ($at = 0; $at < $count; $at++) {
            $queue->incr($namespace);
        }
    });
}
$got['id'] = $client->executeRaw(['MINT', 'sno']);
$got['ids'] = $client->executeRaw(['MINT', 'sno', 'COUNT', '3']);
try {
    $client->set($namespace, '1');
} catch (Predis\PredisException $error) {
    $got['refused'] = $error->getMessage();
    $got['is_typed'] = $error instanceof Predis\Response\ServerException;
}
echo json_encode($got), "\n";

fgets(STDIN);
for ($tries = 0; ; $tries++) {
    try {
        echo json_encode(['again' => $client->incr($namespace)]), "\n";
        break;
    } catch (Predis\Connection\ConnectionException $error) {
        if ($tries === 100) {
            throw $error;
        }
        usleep(100_000);
    }
}

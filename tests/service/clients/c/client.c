// What a C program does with the service: hiredis unchanged. Prints what it got as JSON, a line before and one after a pause.
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void fail(const char *why) {
    fprintf(stderr, "%s\n", why);
    exit(1);
}

static redisReply *kind(redisReply *reply, int type) {
    if (!reply) fail("no reply");
    if (reply->type != type) fail(reply->str ? reply->str : "a reply of another type");
    return reply;
}

static long long integer(redisReply *reply) {
    long long value = kind(reply, REDIS_REPLY_INTEGER)->integer;
    freeReplyObject(reply);
    return value;
}

static redisContext *connected(int port, const char *key) {
    redisContext *context = redisConnect("127.0.0.1", port);
    if (!context) fail("no memory");
    if (!context->err) freeReplyObject(kind(redisCommand(context, "AUTH %s", key), REDIS_REPLY_STATUS));
    return context;
}

int main(int count, char **words) {
    if (count != 5) return 2;
    int port = atoi(words[1]);
    const char *namespace = words[3], *key = words[4];
    redisContext *context = connected(port, key);
    if (context->err) fail(context->errstr);

    printf("{\"first\": %lld", integer(redisCommand(context, "INCR %s", namespace)));
    printf(", \"row\": %lld", integer(redisCommand(context, "INCRBY %s %d", namespace, 10)));
    redisReply *reply = kind(redisCommand(context, "GET %s", namespace), REDIS_REPLY_STRING);
    printf(", \"read\": %s, \"many\": [", reply->str);
    freeReplyObject(reply);
    for (int at = 0; at < 1000; at++)
        if (redisAppendCommand(context, "INCR %s", namespace) != REDIS_OK) fail(context->errstr);
    for (int at = 0; at < 1000; at++) {
        if (redisGetReply(context, (void **)&reply) != REDIS_OK) fail(context->errstr);
        printf(at ? ", %lld" : "%lld", integer(reply));
    }
    freeReplyObject(kind(redisCommand(context, "MULTI"), REDIS_REPLY_STATUS));
    for (int at = 0; at < 2; at++)
        freeReplyObject(kind(redisCommand(context, "INCR %s", namespace), REDIS_REPLY_STATUS));
    reply = kind(redisCommand(context, "EXEC"), REDIS_REPLY_ARRAY);
    if (reply->elements != 2) fail("EXEC did not return two replies");
    printf("], \"atomic\": [%lld, %lld]", reply->element[0]->integer, reply->element[1]->integer);
    freeReplyObject(reply);
    reply = kind(redisCommand(context, "MINT sno"), REDIS_REPLY_STRING);
    printf(", \"id\": \"%s\"", reply->str);
    freeReplyObject(reply);
    reply = kind(redisCommand(context, "MINT sno COUNT 3"), REDIS_REPLY_ARRAY);
    printf(", \"ids\": [");
    for (size_t at = 0; at < reply->elements; at++) printf(at ? ", \"%s\"" : "\"%s\"", reply->element[at]->str);
    freeReplyObject(reply);
    reply = kind(redisCommand(context, "SET %s 1", namespace), REDIS_REPLY_ERROR);
    printf("], \"refused\": \"%s\", \"is_typed\": true}\n", reply->str);
    freeReplyObject(reply);
    fflush(stdout);

    getchar();
    for (int tries = 0; tries < 100 && !(reply = redisCommand(context, "INCR %s", namespace)); tries++) {
        usleep(100000);
        redisFree(context);
        context = connected(port, key);
    }
    printf("{\"again\": %lld}\n", integer(reply));
    redisFree(context);
    return 0;
}

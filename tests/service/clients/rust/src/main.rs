//! What a Rust program does with the service: redis-rs unchanged. Prints what it got as JSON, a line before and one after a pause.

use redis::{Client, Commands, Connection, RedisResult};
use serde_json::json;
use std::{env, io, thread, time::Duration};

fn main() -> RedisResult<()> {
    let words: Vec<String> = env::args().collect();
    let [_, port, protocol, namespace, key] = &words[..] else { panic!("PORT PROTOCOL NAMESPACE KEY") };
    let client = Client::open(format!("redis://:{key}@127.0.0.1:{port}/?protocol=resp{protocol}"))?;
    let mut connection = client.get_connection()?;

    let first: i64 = connection.incr(namespace, 1)?;
    let row: i64 = connection.incr(namespace, 10)?;
    let read: i64 = connection.get(namespace)?;
    let mut pipeline = redis::pipe();
    for _ in 0..1000 {
        pipeline.cmd("INCR").arg(namespace);
    }
    let many: Vec<i64> = pipeline.query(&mut connection)?;
    let mut transaction = redis::pipe();
    transaction.atomic().cmd("INCR").arg(namespace).cmd("INCR").arg(namespace);
    let atomic: Vec<i64> = transaction.query(&mut connection)?;
    let id: String = redis::cmd("MINT").arg("sno").query(&mut connection)?;
    let ids: Vec<String> = redis::cmd("MINT").arg("sno").arg("COUNT").arg(3).query(&mut connection)?;
    let refused = connection.set::<_, _, ()>(namespace, 1).unwrap_err();
    println!(
        "{}",
        json!({
            "first": first, "row": row, "read": read, "many": many, "atomic": atomic, "id": id, "ids": ids,
            "refused": refused.to_string(), "is_typed": refused.code() == Some("ERR"),
        })
    );

    io::stdin().read_line(&mut String::new())?;
    let incr = |connection: &mut Connection| connection.incr::<_, _, i64>(namespace, 1);
    let mut again = incr(&mut connection);
    for _ in 0..100 {
        if again.is_ok() {
            break;
        }
        thread::sleep(Duration::from_millis(100));
        again = client.get_connection().and_then(|mut connection| incr(&mut connection));
    }
    println!("{}", json!({ "again": again? }));
    Ok(())
}

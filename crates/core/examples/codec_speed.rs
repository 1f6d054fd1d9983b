//! Measures the codecs in ns an ID, on every path of this machine, beside a copy of the same bytes: the best of many
//! rounds over IDs that stay in cache. Run with `cargo run --release --example codec_speed`.

use std::hint::black_box;
use std::iter::zip;
use std::time::Instant;

use mintage_core::codec::{Base32, Hex, Path, as_chunks, as_chunks_mut};
use mintage_core::schemes;

const IDS: usize = 2_000;
const ROUNDS: usize = 5_000;

/// Returns the ns an ID of the best round.
fn best(mut round: impl FnMut()) -> f64 {
    let time = |_| {
        let start = Instant::now();
        round();
        start.elapsed().as_nanos()
    };
    (0..ROUNDS).map(time).min().unwrap_or(0) as f64 / IDS as f64
}

macro_rules! report {
    ($codec:ident, $id_len:literal, $text_len:literal) => {{
        let line = |what, encode: f64, decode: f64| {
            println!("{:8} {what:16} {encode:6.2} {decode:6.2}", stringify!($codec));
        };
        let mut ids: Vec<u8> = (0..$id_len * IDS as u32).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
        let mut text = vec![0; $text_len * IDS];
        for path in Path::available() {
            let encode = best(|| $codec::encode_many_by(path, black_box(&ids), black_box(&mut text)));
            let decode = best(|| {
                $codec::decode_many_by(path, black_box(&text), black_box(&mut ids)).expect("encoded before");
            });
            line(path.name(), encode, decode);
        }
        let encode = best(|| {
            for (id, text) in zip(as_chunks(black_box(&ids)).0, as_chunks_mut(&mut text).0) {
                *black_box(text) = $codec::encode(*id);
            }
        });
        let decode = best(|| {
            for (text, id) in zip(as_chunks(black_box(&text)).0, as_chunks_mut(&mut ids).0) {
                *black_box(id) = $codec::decode(text).expect("encoded before");
            }
        });
        line("one at a time", encode, decode);
        let (text_copy, ids_copy) = (text.clone(), ids.clone());
        let encode = best(|| black_box(&mut text).copy_from_slice(black_box(&text_copy)));
        let decode = best(|| black_box(&mut ids).copy_from_slice(black_box(&ids_copy)));
        line("memcpy of output", encode, decode);
    }};
}

macro_rules! report_digits {
    ($scheme:ident, $id_len:literal, $text_len:literal) => {{
        let mut ids: Vec<[u8; $id_len]> = (0..IDS as u32)
            .map(|i| std::array::from_fn(|at| ((i * $id_len + at as u32).wrapping_mul(0x9e37_79b9) >> 24) as u8))
            .collect();
        let mut texts = vec![[0; $text_len]; IDS];
        let encode = best(|| {
            for (id, text) in zip(black_box(&ids), &mut texts) {
                *black_box(text) = schemes::$scheme::DIGITS.encode(*id);
            }
        });
        let decode = best(|| {
            for (text, id) in zip(black_box(&texts), &mut ids) {
                *black_box(id) = schemes::$scheme::DIGITS.decode(text).expect("encoded before");
            }
        });
        println!("{:8} {:16} {encode:6.2} {decode:6.2}", stringify!($scheme), "one at a time");
    }};
}

fn main() {
    println!("{:25} encode decode", "ns an ID");
    report!(Base32, 10, 16);
    report!(Hex, 16, 36);
    report_digits!(ulid, 16, 26);
    report_digits!(ksuid, 20, 27);
    report_digits!(xid, 12, 20);
    report_digits!(objectid, 12, 24);
    report_digits!(sandflake, 16, 26);
}

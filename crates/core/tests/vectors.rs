//! The core agrees with the original implementations, as recorded in `spec/vectors`.
#![cfg(not(loom))]

mod common;

use common::{from_hex, vectors};
use mintage_core::codec::positional::{BASE36, BASE64_URL};
use mintage_core::id::Id as _;
use mintage_core::mint::Mint as _;
use mintage_core::schemes::locality::{self, Mode, Origin};
use mintage_core::schemes::nanoid::Characters;
use mintage_core::schemes::{cuid, cuid2, sno, snowflake};
use mintage_core::step::Refusal;
use mintage_core::units::{Tick, UnixMs};
use mintage_core::views::typeid;
use serde_json::Value;
use std::convert::Infallible;

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap()
}

fn int(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| value.as_str().unwrap().parse().unwrap())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[test]
fn sno_ids_have_the_fields_of_the_go_library() {
    let recorded = vectors("sno");
    let mut compared = 0;
    for case in list(&recorded["encode_decode"]).iter().chain(list(&recorded["raw_decode"])) {
        let id = sno::Id::parse(text(&case["encoded"])).unwrap();
        assert_eq!(id.to_string(), text(&case["encoded"]));
        assert_eq!(id.to_bytes(), *from_hex(&case["hex"]));
        assert_eq!(sno::FORMAT.time_ns(&id.to_bytes()), Some(int(&case["timestamp_ns"]).into()));
        let bits = id.to_bytes().iter().fold(0, |bits, &byte| bits << 8 | u128::from(byte));
        let fields = [sno::TIME, sno::TICK, sno::META, sno::PARTITION, sno::SEQUENCE].map(|field| field.get(bits));
        assert_eq!(fields, ["units", "tick", "meta", "partition", "sequence"].map(|field| int(&case[field]) as u64));
        let [units, tick, meta, partition, sequence] = fields;
        assert_eq!(sno::Id::new(units << 1 | tick, meta as u8, partition as u16, sequence as u16), id);
        compared += 1;
    }
    assert!(compared > 190);
}

#[test]
fn sno_steps_agree_with_go_under_recorded_clocks() {
    let recorded = vectors("sno");
    for scenario in list(&recorded["clock_traces"]) {
        let start = &scenario["snapshot"];
        let mint = sno::Mint::restore(&sno::Snapshot {
            partition: 0xabcd,
            sequence_min: int(&start["sequenceMin"]) as u16,
            sequence_max: int(&start["sequenceMax"]) as u16,
            sequence: int(&start["sequence"]) as u32,
            now: 0,
            wall_hi: int(&start["wallHi"]) as u64,
            wall_safe: int(&start["wallSafe"]) as u64,
            drifts: int(&start["drifts"]) as u32,
            leased: None,
        })
        .unwrap();
        for step in list(&scenario["trace"]) {
            // When Go sleeps and reads the clock again, a step refuses. The last reading mints.
            let mut minted = None;
            for reading in list(&step["clock_readings_consumed"]) {
                assert_eq!(minted, None, "Go read the clock once more");
                let Ok::<_, Infallible>(run) = mint.take_slow(1, || Ok(Tick(int(reading) as u64)));
                if let Err(refusal) = run {
                    assert!(matches!(refusal, Refusal::Rollback { .. }), "{refusal:?}");
                }
                minted = run.ok();
            }
            let run = minted.unwrap();
            let id = sno::Id::new(run.tick, int(&step["meta"]) as u8, 0xabcd, run.first as u16);
            assert_eq!(id.to_string(), text(&step["encoded"]), "{}", scenario["scenario"]);
            let (state, drift) = mint.view();
            let after = [state.unit().0 as i64, drift.safe.0 as i64, drift.count.into()];
            assert_eq!(after, ["wallHi", "wallSafe", "drifts"].map(|field| int(&step["after"][field])));
        }
    }
}

#[test]
fn sno_accepts_the_bounds_that_go_accepts() {
    for case in list(&vectors("sno")["bounds"]) {
        let bounds = sno::Bounds::new(int(&case["min"]) as u16, int(&case["max"]) as u16);
        let go = &case["accepted"];
        // A snapshot makes the refusals that Go makes for the sequence alone.
        if go.is_object() {
            let bounds = bounds.unwrap();
            assert_eq!(i64::from(bounds.capacity()), int(&go["cap"]));
            assert_eq!(
                (i64::from(bounds.min), i64::from(bounds.max)),
                (int(&go["sequence_min"]), int(&go["sequence_max"]))
            );
        } else if int(&case["sequence"]) == 0 {
            assert!(bounds.is_err(), "{case}");
        }
    }
}

#[test]
fn snowflakes_agree_with_the_java_class() {
    let recorded = vectors("callicoder_snowflake");
    for case in list(&recorded["generate"]) {
        let fields = snowflake::Layout::of(&snowflake::FORMATS[0]).declaration();
        let layout = snowflake::Layout::declare(&fields, int(&case["custom_epoch_ms"]).into(), 1).unwrap();
        let time = UnixMs(int(&case["time_ms"]));
        let id = layout.compose(time, int(&case["node"]) as u64, int(&case["sequence"]) as u64).unwrap();
        assert_eq!(id.to_string(), text(&case["id"]));
        let parts = layout.parse(id).unwrap();
        let read = [parts.time.0, parts.node as i64, parts.sequence as i64];
        assert_eq!(read, ["timestamp_ms", "node", "sequence"].map(|field| int(&case["parse"][field])));
        assert!(layout.min_at(time).unwrap() <= id && id <= layout.max_at(time).unwrap());
        assert_eq!(layout.max_at(time).unwrap() - layout.min_at(time).unwrap(), (1 << 22) - 1);
    }
}

#[test]
fn node_numbers_from_macs_agree_with_the_java_class() {
    for case in list(&vectors("callicoder_snowflake")["node_id_from_mac_lists"]["vectors"]) {
        let macs: Vec<_> = list(&case["macs"]).iter().map(text).collect();
        assert_eq!(snowflake::node_from_macs(&macs).map(i64::from), Ok(int(&case["node_id"])), "{macs:?}");
    }
    for wrong in ["", "0242ac11000", "0242ac1100022", "02:42:ac:11:00:0g", "02-42:ac:11:00:02", "0:242:ac:11:00:02"] {
        assert!(snowflake::node_from_macs(&[wrong]).is_err(), "{wrong}");
    }
}

#[test]
fn locality_ids_agree_with_the_original_that_is_right() {
    for case in list(&vectors("locality_uuid")["generate"]) {
        let mode = if case["mode"] == "var" { Mode::Variable } else { Mode::Sequential };
        let before = int(&case["counter_before"]) as u32;
        let counter = mode.advance(before, 1);
        let origin = Origin::new(int(&case["pid"]) as u16, locality::mac_fragment(text(&case["mac"])).unwrap());
        let id = locality::Id::new(mode.written(counter), origin, int(&case["clock_ms"]) as u64 & locality::TIME.max());
        // Java loses bits of counters from 2^31 on; Ruby wraps one early.
        let java_is_right = mode == Mode::Sequential || counter < 1 << 31;
        let right = if java_is_right { "java" } else { "ruby" };
        if i64::from(counter) == int(&case[right]["counter_after"]) & 0xffff_ffff {
            assert_eq!(id.to_string(), text(&case[right]["text"]), "{case}");
        }
        assert_eq!(locality::Id::parse(&id.to_string()), Ok(id));
        assert_eq!(id.version(), 'b');
        assert_eq!(id.field(locality::PID, "pid"), Ok(int(&case["pid"]) as u64));
    }
}

#[test]
fn sequential_ids_start_where_both_originals_start() {
    for case in list(&vectors("locality_uuid")["sequential_seeds"]) {
        let seed = locality::sequential_seed(UnixMs(int(&case["clock_ms"])));
        assert_eq!(i64::from(seed), int(&case["java"]["seed_u32"]), "{case}");
    }
}

/// Returns the cuid whose random part is these two blocks.
fn cuid_of(ms: u64, counter: i64, fingerprint: &[u8], blocks: [u64; 2]) -> String {
    let random = blocks[0] * 36_u64.pow(4) + blocks[1];
    let (id, length) = cuid::write(ms, counter as u32, fingerprint.try_into().unwrap(), random).unwrap();
    String::from_utf8(id[..length].to_vec()).unwrap()
}

fn fingerprint(case: &Value) -> [u8; 4] {
    cuid::fingerprint(int(&case["pid"]) as u32, text(&case["hostname"]))
}

#[test]
fn fingerprints_of_cuids_agree_with_the_originals() {
    let recorded = vectors("cuid");
    let [js, python] = [list(&recorded["js"]["fingerprint"]), list(&recorded["python"]["vectors"])];
    assert!(js.len() > 10 && python.len() > 5);
    for case in js.iter().chain(python) {
        assert_eq!(fingerprint(case), text(&case["fingerprint"]).as_bytes(), "{case}");
    }
}

#[test]
fn cuids_agree_with_the_originals() {
    let recorded = vectors("cuid");
    let has_all_blocks = |case: &&Value| case["length"] == 25 || case["length"] == 26;
    for case in list(&recorded["js"]["generate"]).iter().filter(has_all_blocks) {
        let id = text(&case["cuid"]);
        let blocks = [&id[id.len() - 8..id.len() - 4], &id[id.len() - 4..]];
        let blocks = blocks.map(|block| u64::from_str_radix(block, 36).unwrap());
        assert_eq!(cuid_of(int(&case["time_ms"]) as u64, int(&case["counter"]), &fingerprint(case), blocks), id);
    }
    for case in list(&recorded["python"]["generate"]) {
        let blocks: Vec<_> = list(&case["random_blocks_int"]).iter().map(|block| int(block) as u64).collect();
        let ms = (case["time_s"].as_f64().unwrap() * 1000.0).round() as u64;
        for (i, id) in list(&case["ids"]).iter().enumerate() {
            // The Python package counts one ahead of its attribute, and draws blocks up to 36^4, inclusive.
            let counter = (int(&case["counter_attr_before"]) + 1 + i as i64) % i64::from(cuid::COUNTER_VALUES);
            let blocks = [blocks[2 * i] % 36_u64.pow(4), blocks[2 * i + 1] % 36_u64.pow(4)];
            assert_eq!(cuid_of(ms, counter, text(&case["fingerprint"]).as_bytes(), blocks), text(id));
        }
    }
    for case in list(&recorded["go_lucsky"]["generate"]) {
        let id = text(&case["cuid"]);
        let ms = u64::from_str_radix(&id[1..9], 36).unwrap();
        let blocks = ["random1", "random2"].map(|block| int(&case[block]) as u64);
        assert_eq!(cuid_of(ms, int(&case["counter"]), text(&case["fingerprint"]).as_bytes(), blocks), id);
    }
}

#[test]
fn all_random_blocks_occur_not_only_half_as_in_node() {
    let recorded = vectors("cuid");
    let blocks = list(&recorded["js"]["random_block_range"]).iter().map(|case| text(&case["block"]));
    assert_eq!(blocks.max(), Some("i000"), "whatever the 32 bits are");
    assert!(cuid_of(cuid::TIMES_MS[0], 0, b"0000", [36_u64.pow(4) - 1; 2]).ends_with("zzzzzzzz"));
}

#[test]
fn cuid2s_agree_with_the_original() {
    for case in list(&vectors("cuid")["cuid2_js"]["generate"]) {
        let values: Vec<_> =
            list(&case["random_values_repeating"]).iter().map(|value| value.as_f64().unwrap()).collect();
        let length = int(&case["length"]) as usize;
        let value = |i: usize| values[i % values.len()];
        let letter = b'a' + (value(0) * 26.0) as u8;
        let salt: Vec<u8> = (1..=length).map(|i| BASE36.characters()[(value(i) * 36.0) as usize]).collect();
        let (ms, count) = (int(&case["now_ms"]) as u64, int(&case["counter"]) as u64);
        let id = cuid2::write(letter, ms, &salt, count, text(&case["fingerprint"]).as_bytes(), length);
        assert_eq!(std::str::from_utf8(&id[..length]), Ok(text(&case["id"])));
    }
}

/// Returns the characters that bytes choose; both methods agree if the alphabet is ASCII.
fn chosen(characters: &Characters, random: &[u8]) -> String {
    let id: String = characters.choose(random).collect();
    if characters.is_ascii() {
        let mut place = random.to_vec();
        let count = characters.choose_ascii(&mut place);
        assert_eq!(&place[..count], id.as_bytes());
    }
    id
}

#[test]
fn recorded_random_bytes_choose_the_recorded_nanoid() {
    let recorded = vectors("nanoid");
    let mut seen = 0;
    for (cases, is_js) in [(&recorded["js"]["custom_random"], true), (&recorded["python"]["vectors"], false)] {
        for case in list(cases) {
            let count = text(&case["alphabet"]).chars().count();
            let Ok(characters) = Characters::new(text(&case["alphabet"])) else {
                assert_eq!(count, 1, "an alphabet of one is the only one refused");
                continue;
            };
            let mut random = Vec::new();
            for request in list(&case["random_bytes_hex"]) {
                let mut bytes = from_hex(request);
                if is_js {
                    // customRandom reads each buffer from its end.
                    bytes.reverse();
                } else {
                    // The Python package masks each byte, and skips values beyond the alphabet.
                    let mask = (count.next_power_of_two() - 1) as u8;
                    bytes = bytes.iter().map(|byte| byte & mask).filter(|&byte| usize::from(byte) < count).collect();
                }
                random.extend(bytes);
            }
            let id: String = chosen(&characters, &random).chars().take(int(&case["size"]) as usize).collect();
            assert_eq!(id, text(&case["id"]));
            seen += 1;
        }
    }
    assert_eq!(seen, 30);
}

#[test]
fn the_originals_of_nanoid_share_a_set_of_characters() {
    let recorded = vectors("nanoid");
    let sorted = |text: &str| {
        let mut characters: Vec<char> = text.chars().collect();
        characters.sort_unstable();
        characters
    };
    let [js, python] = [text(&recorded["js"]["url_alphabet"]), text(&recorded["python"]["alphabet"])];
    assert_ne!(js, python);
    assert_eq!(sorted(js), sorted(python));
    assert_eq!(sorted(js), sorted(std::str::from_utf8(BASE64_URL.characters()).unwrap()));
}

#[test]
fn valid_typeids_are_read_and_written() {
    for case in list(&vectors("typeid")["valid"]) {
        let id = u128::from_str_radix(&text(&case["uuid"]).replace('-', ""), 16).unwrap().to_be_bytes();
        let (written, prefix) = (text(&case["typeid"]), text(&case["prefix"]));
        assert_eq!(typeid::read(written), Ok((prefix, id)), "{case}");
        assert_eq!(typeid::check(prefix), Ok(()));
        assert_eq!(typeid::write(prefix, id), written);
    }
}

#[test]
fn invalid_typeids_are_refused() {
    for case in list(&vectors("typeid")["invalid"]) {
        let error = typeid::read(text(&case["typeid"])).unwrap_err();
        assert!(error.code().starts_with("parse."), "{case}");
    }
}

//! The core agrees with the original implementations, as recorded in `spec/vectors`.
#![cfg(not(loom))]

use mintage_core::id::Id as _;
use mintage_core::mint::Mint as _;
use mintage_core::schemes::locality::{self, Mode, Origin};
use mintage_core::schemes::{sno, snowflake};
use mintage_core::step::Refusal;
use mintage_core::units::{Tick, UnixMs};
use serde_json::Value;
use std::convert::Infallible;

fn vectors(name: &str) -> Value {
    let path = format!("{}/../../spec/vectors/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap()
}

fn int(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| value.as_str().unwrap().parse().unwrap())
}

#[test]
fn sno_ids_have_the_fields_of_the_go_library() {
    let recorded = vectors("sno");
    let mut compared = 0;
    for case in list(&recorded["encode_decode"]).iter().chain(list(&recorded["raw_decode"])) {
        let id = sno::Id::parse(case["encoded"].as_str().unwrap()).unwrap();
        assert_eq!(id.to_string(), case["encoded"].as_str().unwrap());
        assert_eq!(format!("{:020x}", id.to_u128()), case["hex"].as_str().unwrap());
        assert_eq!(id.unit(), Tick(int(&case["units"]) as u64));
        assert_eq!(id.time().start_ns().0, i128::from(int(&case["timestamp_ns"])));
        let fields = [i64::from(id.tick()), id.meta().into(), id.partition().into(), id.sequence().into()];
        assert_eq!(fields, ["tick", "meta", "partition", "sequence"].map(|field| int(&case[field])));
        let composed = sno::Id::from_parts(id.time(), id.tick(), id.meta(), id.partition(), id.sequence());
        assert_eq!(composed, Ok(id));
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
            assert_eq!(id.to_string(), step["encoded"].as_str().unwrap(), "{}", scenario["scenario"]);
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
        let layout = snowflake::Layout::declare(&fields, int(&case["custom_epoch_ms"]), 1).unwrap();
        let time = UnixMs(int(&case["time_ms"]));
        let id = layout.compose(time, int(&case["node"]) as u64, int(&case["sequence"]) as u64).unwrap();
        assert_eq!(id.to_string(), case["id"].as_str().unwrap());
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
        let macs: Vec<_> = list(&case["macs"]).iter().map(|mac| mac.as_str().unwrap()).collect();
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
        let origin =
            Origin::new(int(&case["pid"]) as u16, locality::mac_fragment(case["mac"].as_str().unwrap()).unwrap());
        let id = locality::Id::new(mode.written(counter), origin, int(&case["clock_ms"]) as u64 & locality::TIME.max());
        // Java loses bits of counters from 2^31 on; Ruby wraps one early.
        let java_is_right = mode == Mode::Sequential || counter < 1 << 31;
        let right = if java_is_right { "java" } else { "ruby" };
        if i64::from(counter) == int(&case[right]["counter_after"]) & 0xffff_ffff {
            assert_eq!(id.to_string(), case[right]["text"].as_str().unwrap(), "{case}");
        }
        assert_eq!(locality::Id::parse(&id.to_string()), Ok(id));
        assert_eq!(id.version(), 'b');
        assert_eq!(id.field(locality::PID, "pid"), Ok(int(&case["pid"]) as u64));
        assert_eq!(
            (i64::from(origin.pid()), u64::from(origin.mac())),
            (int(&case["pid"]), id.field(locality::MAC, "mac").unwrap())
        );
    }
}

#[test]
fn sequential_ids_start_where_both_originals_start() {
    for case in list(&vectors("locality_uuid")["sequential_seeds"]) {
        let seed = locality::sequential_seed(UnixMs(int(&case["clock_ms"])));
        assert_eq!(i64::from(seed), int(&case["java"]["seed_u32"]), "{case}");
    }
}

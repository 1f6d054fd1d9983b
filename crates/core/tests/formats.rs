//! Formats are well declared, and agree with the documentation and the code beside them.
#![cfg(not(loom))]

use mintage_core::format::{Clock, Constraint, Description, Format, Part, Rendering, Role, SECOND, Spelling, Value};
use mintage_core::layout::Field;
use mintage_core::schemes::{ambiguous_formats, formats, locality, read_pool_layout, sno, snowflake, ulid, uuid, xid};
use mintage_core::units::UnixMs;
use proptest::prelude::*;
use std::collections::HashSet;
use std::panic::catch_unwind;

fn all() -> impl Iterator<Item = &'static Format<'static>> {
    formats().chain(ambiguous_formats())
}

/// Returns the text of a scheme's file, or of all files in its folder.
fn source(format: &Format<'_>) -> String {
    let place = format!("{}/src/schemes/{}", env!("CARGO_MANIFEST_DIR"), format.scheme);
    let Ok(files) = std::fs::read_dir(&place) else { return std::fs::read_to_string(format!("{place}.rs")).unwrap() };
    files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect()
}

#[test]
fn the_head_of_each_file_draws_its_formats() {
    for format in all() {
        let drawn: String = format.diagram().lines().map(|line| format!("//! {line}\n")).collect();
        assert!(source(format).contains(&drawn), "{} should have\n{drawn}", format.name());
    }
}

#[test]
fn every_format_is_well_declared() {
    for format in all() {
        let name = format.name();
        assert_eq!(format.size() * 8, format.bits() as usize, "{name}");
        assert!(0.0 < format.weight && format.weight <= 1.0 && !format.source.is_empty(), "{name}");
        let names: HashSet<_> = format.parts.iter().map(|part| part.name).collect();
        assert_eq!(names.len(), format.parts.len(), "{name}");
        for part in format.parts {
            assert!(!matches!(part.description, Description::Text("")), "{name} {}", part.name);
            assert!(format.describe(part).is_none_or(|text| !text.is_empty()), "{name} {}", part.name);
        }
        for counted in format.clock.iter().flat_map(|clock| clock.parts) {
            assert!(format.parts.iter().any(|part| part.name == *counted && part.role == Role::Time), "{name}");
        }
        let lengths: HashSet<_> = format.texts.iter().map(|text| text.length()).collect();
        assert_eq!(lengths.len(), format.texts.len(), "{name}: the length tells which of its texts it is");
    }
}

#[test]
fn a_missing_or_too_wide_part_has_no_field() {
    assert_eq!(sno::FORMAT.field("meta"), Field { bits: 8, shift: 32 });
    assert!(catch_unwind(|| sno::FORMAT.field("metabyte")).is_err());
    assert!(catch_unwind(|| sno::FORMAT.field("met")).is_err());
    assert!(catch_unwind(|| ulid::FORMAT.field("random")).is_err(), "80 bits");
}

#[test]
fn a_clock_is_described_with_no_needless_digits() {
    for (epoch_ns, tick_ns, description) in [
        (0, SECOND, "seconds since 1970-01-01"),
        (1_400_000_000 * SECOND as i128, SECOND, "seconds since 2014-05-13T16:53:20Z"),
        (1_288_834_974_657_000_000, 1_000_000, "milliseconds since 2010-11-04T01:42:54.657Z"),
        (1_262_304_000_000_000_000, 4_000_000, "ticks of 4 ms since 2010-01-01"),
        (-12_219_292_800 * SECOND as i128, 100, "ticks of 100 ns since 1582-10-15"),
        (1_000, 1_000_000, "milliseconds since 1970-01-01T00:00:00.000001Z"),
        (i128::from(i64::MIN) * 1_000_000, 1_000_000, "milliseconds since -9223372036854775808000000 ns from 1970"),
    ] {
        assert_eq!(Clock::new(epoch_ns, tick_ns).to_string(), description);
    }
}

#[test]
fn a_part_is_rendered_and_constrained_as_declared() {
    let parts = [
        Part::time("time", 16).rendered_as(Rendering::Base36).constrained_to(Constraint::Within(36, 36 * 36)),
        Part::new(Role::Sequence, "counter", 32, "c").rendered_as(Rendering::Reversed),
        Part::random("random", 12, "r"),
        Part::fixed("fixed", 4, 0xb, "f"),
        Part::random("letters", 16, "l").rendered_as(Rendering::Letters),
    ];
    let format = Format::new("mine", &parts, 1.0, "here").with_clock(Clock::UNIX_S);
    let id = *b"z1\x12\x34\x56\x78\xab\xcbok";
    assert!(format.fits(&id));
    let values: Vec<_> = format.placed().map(|(part, low)| format.explain(part, low, &id).0).collect();
    let text = |text: &str| Value::Text(text.into());
    let expected =
        [Value::Number(35 * 36 + 1), Value::Number(0x8765_4321), text("abc"), Value::Number(0xb), text("ok")];
    assert_eq!(values, expected);
    assert_eq!(format.time_ns(&id), Some(1_261 * SECOND as i128));
    assert_eq!(format.expires_ns(), Some(1_296 * SECOND as i128));
    for wrong in [*b"01\x12\x34\x56\x78\xab\xcbok", *b"{1\x12\x34\x56\x78\xab\xcbok", *b"z1\x12\x34\x56\x78\xab\xccok"]
    {
        assert!(!format.fits(&wrong));
    }
}

#[test]
fn a_time_part_counts_no_further_than_its_constraint() {
    let parts = [
        Part::time("time", 8),
        Part::time("rest", 8).constrained_to(Constraint::Within(0, 10)),
        Part::random("random", 8, "r"),
    ];
    let clock = Clock::new(7, SECOND / 10).counted_by(&["time", "rest"]);
    let format = Format::new("mine", &parts, 1.0, "here").with_clock(clock);
    assert_eq!(format.ticks(), 2_560);
    assert_eq!(format.expires_ns(), Some(256 * SECOND as i128 + 7));
    assert_eq!(format.time_ns(&[3, 9, 0]), Some(39 * SECOND as i128 / 10 + 7));
    assert_eq!(format.time_ns(&[4, 0, 0]), Some(4 * SECOND as i128 + 7));
    assert!(format.fits(&[3, 9, 0]) && !format.fits(&[3, 10, 0]));
}

#[test]
fn a_text_is_read_with_its_spelling() {
    let id = [0xab; 16];
    let text = ulid::FORMAT.write(&id);
    assert_eq!(ulid::FORMAT.read(&text), Some((id.to_vec(), Spelling::Canonical)));
    assert_eq!(ulid::FORMAT.read(&text.to_lowercase()), Some((id.to_vec(), Spelling::Variant)));
    assert_eq!(ulid::FORMAT.read(&uuid::v1::FORMAT.write(&id)), Some((id.to_vec(), Spelling::Borrowed)));
    let held = uuid::v1::FORMAT.write(b"brpk4q72xwf2m63l");
    assert_eq!(
        sno::FORMAT.read(&held).map(|(id, form)| (sno::FORMAT.write(&id), form)),
        Some(("brpk4q72xwf2m63l".into(), Spelling::Held))
    );
    assert_eq!(xid::FORMAT.read(&text), None);
}

#[test]
fn a_pool_layout_is_read_as_it_is_written() {
    for (text, written, nodes) in [
        ("sno", "sno/1", 65_536),
        ("sno/8192", "sno/8192", 65_536 << 13),
        ("locality", "locality", 1 << 44),
        ("uuid.v1", "uuid.v1", 1 << 47),
        ("uuid.v6", "uuid.v6", 1 << 47),
        ("uuid.v7", "uuid.v7", 1 << 24),
        ("ulid", "ulid", 1 << 24),
        ("ksuid", "ksuid", 1 << 32),
        ("ksuid_ms", "ksuid_ms", 1 << 32),
        ("xid", "xid", 1 << 40),
        ("objectid", "objectid", 1 << 40),
        ("sandflake", "sandflake", 1 << 32),
        ("snowflake", "snowflake time:41 node:10 sequence:12 @1420070400000 1ms", 1_024),
        ("twitter", "snowflake time:41 datacenter:5 worker:5 sequence:12 @1288834974657 1ms", 1_024),
        ("snowflake time:40 Rack_1:3 @-5 20ms", "snowflake time:40 Rack_1:3 @-5 20ms", 8),
    ] {
        let layout = read_pool_layout(text).unwrap().unwrap();
        assert_eq!((layout.text.as_str(), layout.nodes), (written, nodes));
        assert_eq!(read_pool_layout(written), Ok(Some(layout)));
    }
}

#[test]
fn generators_end_when_their_format_declares() {
    for format in all().filter(|format| format.layout.is_none()) {
        if let Some(pool) = read_pool_layout(format.scheme).unwrap() {
            let declared = format.ends.map(|ends| ends.start_ns().0).or_else(|| format.expires_ns());
            assert_eq!(declared, Some(pool.ends.start_ns().0), "{}", format.name());
        }
    }
}

#[test]
fn a_text_that_is_no_pool_layout_is_not_read() {
    for text in
        ["", "sno/0", "sno/3", "sno/08", "sno/+8", "sno/16384", "sno/", "snow", "LOCALITY", "locality ", "nanoid"]
    {
        assert_eq!(read_pool_layout(text), Ok(None), "{text:?}");
    }
    for text in
        ["time:41 @0 1ms", "snowflake ", "snowflake time:41", "snowflake time:41 @0", "snowflake time:41 @+1 1ms"]
    {
        assert_eq!(read_pool_layout(text), Ok(None), "{text:?}");
    }
    for text in
        ["time:41 node:40 @0 1ms", "time:41 @0 0ms", "time:41 @0 4294967296ms", "time:41 @99999999999999999 1ms"]
    {
        assert_eq!(read_pool_layout(&format!("snowflake {text}")).unwrap_err().code(), "config.layout", "{text:?}");
    }
}

#[test]
fn generators_of_locality_end_before_their_clock() {
    assert_eq!(locality::FORMAT.ends, Some(UnixMs(1 << 43)));
    assert_eq!(locality::FORMAT.expires_ns(), Some((1 << 48) * 1_000_000));
}

proptest! {
    #[test]
    fn a_layout_and_its_format_have_the_same_fields(time in 1_u32..41, node in 1_u32..12, id: u64) {
        let layout = snowflake::Layout::declare(&format!("time:{time} node:{node} sequence:10"), 1_000, 3).unwrap();
        let id = id >> (64 - layout.bits());
        layout.with_format(Some("mine"), |format| {
            let parts = layout.parse(id).unwrap();
            prop_assert_eq!(format.bits(), 64);
            prop_assert_eq!(format.time_ns(&id.to_be_bytes()), Some(parts.time.start_ns().0));
            prop_assert_eq!(format.nodes(), Some(layout.max_node() + 1));
            for (name, value) in parts.fields {
                let (part, low) = format.placed().find(|(part, _)| part.name == name).unwrap();
                prop_assert_eq!(format.explain(part, low, &id.to_be_bytes()).0, Value::Number(value.into()));
            }
            prop_assert_eq!(snowflake::Layout::read(&layout.text()).unwrap().unwrap(), layout.clone());
            Ok(())
        })?;
    }

    #[test]
    fn bits_beyond_a_layout_do_not_fit_its_format(id: u64) {
        let format = snowflake::FORMATS[0];
        prop_assert_eq!(format.fits(&id.to_be_bytes()), id >> 63 == 0);
    }
}

#[test]
fn a_pattern_is_concise() {
    let digits = "[0-9A-Fa-f]";
    for (format, pattern) in [
        (sno::FORMAT, "[2-9a-x]{16}"),
        (xid::FORMAT, "[0-9a-v]{19}[0g]"),
        (ulid::FORMAT, "[0-7ILOilo][0-9A-TV-Za-tv-z]{25}"),
        (uuid::v7::FORMAT, &format!("{digits}{{8}}-{digits}{{4}}-{digits}{{4}}-{digits}{{4}}-{digits}{{12}}")),
        (locality::FORMAT, &uuid::v4::FORMAT.pattern()),
        (snowflake::FORMATS[0], &snowflake::FORMATS[1].pattern()),
    ] {
        assert_eq!(format.pattern(), pattern, "{}", format.name());
    }
    let letters = all().filter(|format| format.scheme.starts_with("cuid")).map(|format| format.pattern());
    let expected = ["c[1-9a-z][0-9a-z]{23}", "c[1-9a-z][0-9a-z]{24}", "[a-z][0-9a-z]{23}"];
    assert_eq!(letters.collect::<Vec<_>>(), expected);
    assert_eq!(
        snowflake::Layout::read("time:1 node:1 @0 1ms")
            .map(|layout| layout.map(|layout| layout.with_format(None, |format| format.pattern()))),
        Ok(Some("[0-3]".into()))
    );
}

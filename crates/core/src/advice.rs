//! Advice on the widths of a snowflake layout.

use crate::error::Error;
use crate::schemes::snowflake::Layout;
use crate::units::UnixMs;

/// The requirements on a layout.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// The most IDs that one node mints in a second.
    pub ids_per_second: u64,
    /// The most nodes that mint at the same time.
    pub nodes: u64,
    /// Years from the epoch.
    pub years: u32,
    /// Bits of an ID. 63 stay positive in a signed integer, 53 are exact in JavaScript.
    pub bits: u32,
    /// The start of tick 0.
    pub epoch_ms: i64,
}

/// A field of an advised layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Width {
    /// Its name.
    pub field: &'static str,
    /// Its bits.
    pub bits: u32,
    /// Their effect, in words.
    pub buys: String,
}

/// A layout that meets a need, and the effect of its widths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The layout.
    pub layout: Layout,
    /// Its fields, high to low.
    pub widths: Vec<Width>,
}

/// The ticks to try in milliseconds, the finest first.
const TICKS_MS: [u32; 10] = [1, 2, 4, 10, 20, 50, 100, 200, 500, 1000];
const YEAR_MS: u64 = 31_556_952_000;
/// The most bits of a layout's sequence number.
const MAX_SEQUENCE_BITS: u32 = 31;

/// Returns the number of bits that this many values need.
const fn bits_for(values: u64) -> u32 {
    u64::BITS - values.saturating_sub(1).leading_zeros()
}

/// Returns the layout with the finest tick that meets a need. The remaining bits go to the sequence number, as IDs come
/// in bursts.
///
/// # Errors
/// [`Error::Layout`]: no layout of so many bits meets the need.
///
/// ```
/// use mintage_core::advice::{Need, advise};
/// let need = Need { ids_per_second: 1000, nodes: 100, years: 50, bits: 53, epoch_ms: 1_735_689_600_000 };
/// assert_eq!(advise(&need).unwrap().layout.bits(), 53);
/// ```
pub fn advise(need: &Need) -> Result<Advice, Error> {
    let node = bits_for(need.nodes);
    let span_ms = u64::from(need.years) * YEAR_MS;
    let widths = |unit_ms: u32| {
        let time = bits_for(span_ms.div_ceil(unit_ms.into())).max(1);
        let a_tick = u128::from(need.ids_per_second) * u128::from(unit_ms);
        (time, bits_for(u64::try_from(a_tick.div_ceil(1000)).unwrap_or(u64::MAX)))
    };
    let fits = |&unit_ms: &u32| {
        let (time, sequence) = widths(unit_ms);
        time + node + sequence <= need.bits && sequence <= MAX_SEQUENCE_BITS
    };
    let Some(unit_ms) = TICKS_MS.into_iter().find(fits) else {
        let (time, sequence) = widths(TICKS_MS[TICKS_MS.len() - 1]);
        let (asked, has) = (time + node + sequence, need.bits);
        let layout = format!("time:{time} node:{node} sequence:{sequence}");
        let reason = format!(
            "{asked} bits, even with ticks of a second, and an ID has {has}: ask for fewer years, nodes or IDs"
        );
        return Err(Error::Layout { layout, reason });
    };
    let (time, sequence) = widths(unit_ms);
    let sequence = (need.bits - time - node).min(MAX_SEQUENCE_BITS).max(sequence);
    let declared: Vec<_> = [("time", time), ("node", node), ("sequence", sequence)]
        .into_iter()
        .filter(|&(_, bits)| bits > 0)
        .map(|(name, bits)| format!("{name}:{bits}"))
        .collect();
    let layout = Layout::declare(&declared.join(" "), need.epoch_ms.into(), unit_ms)?;
    let widths = vec![
        Width { field: "time", bits: time, buys: describe_time(&layout, time, unit_ms) },
        Width {
            field: "node",
            bits: node,
            buys: format!("{} nodes, {} asked for; a bit more doubles them", 1_u64 << node, need.nodes),
        },
        Width { field: "sequence", bits: sequence, buys: describe_sequence(&layout, unit_ms, need.ids_per_second) },
    ];
    Ok(Advice { layout, widths: widths.into_iter().filter(|width| width.bits > 0).collect() })
}

fn describe_time(layout: &Layout, bits: u32, unit_ms: u32) -> String {
    let years = (1_u128 << bits) * u128::from(unit_ms) / u128::from(YEAR_MS);
    let end = UnixMs(layout.expires().0);
    format!("ticks of {unit_ms} ms until {end}, {years} years; a bit less halves them")
}

fn describe_sequence(layout: &Layout, unit_ms: u32, asked: u64) -> String {
    let a_tick = layout.ids_per_tick();
    let a_second = u64::from(a_tick) * 1000 / u64::from(unit_ms);
    format!("{a_tick} IDs a tick, {a_second} a second and node, {asked} asked for; a bit less halves them")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEED: Need = Need { ids_per_second: 10_000, nodes: 1000, years: 60, bits: 63, epoch_ms: 1_735_689_600_000 };

    #[test]
    fn the_finest_sufficient_tick_is_chosen() {
        let advice = advise(&NEED).unwrap();
        assert_eq!(advice.layout.declaration(), "time:41 node:10 sequence:12");
        assert_eq!(advice.layout.timescale.unit_ms, 1);
    }

    #[test]
    fn fewer_bits_suffice_with_a_coarser_tick() {
        let advice = advise(&Need { ids_per_second: 100, nodes: 2000, bits: 53, ..NEED }).unwrap();
        assert_eq!(advice.layout.declaration(), "time:41 node:11 sequence:1");
        let slow = advise(&Need { ids_per_second: 2, nodes: 1 << 20, bits: 53, years: 100, ..NEED }).unwrap();
        assert!(slow.layout.timescale.unit_ms > 1);
        assert_eq!(slow.layout.bits(), 53);
    }

    #[test]
    fn one_node_needs_no_field() {
        let advice = advise(&Need { nodes: 1, ..NEED }).unwrap();
        assert_eq!(advice.layout.declaration(), "time:41 sequence:22");
        assert_eq!(advice.widths.len(), 2);
    }

    #[test]
    fn an_impossible_need_is_refused_with_its_bits() {
        let error = advise(&Need { nodes: 1 << 40, bits: 53, ..NEED }).unwrap_err();
        assert_eq!(error.code(), "config.layout");
        assert!(error.to_string().contains("an ID has 53"), "{error}");
    }

    #[test]
    fn an_advised_layout_meets_the_need_within_its_bits() {
        for ids_per_second in [1, 999, 1000, 1001, 4_096_000, 100_000_000] {
            for nodes in [1, 2, 3, 1024, 1025] {
                for years in [1, 17, 100] {
                    for bits in [53, 63] {
                        let Ok(advice) = advise(&Need { ids_per_second, nodes, years, bits, ..NEED }) else { continue };
                        let (layout, unit_ms) = (&advice.layout, advice.layout.timescale.unit_ms);
                        assert!(layout.max_node() + 1 >= nodes);
                        assert!(u64::from(layout.ids_per_tick()) * 1000 / u64::from(unit_ms) >= ids_per_second);
                        assert!(layout.expires().0 - NEED.epoch_ms >= i64::from(years) * YEAR_MS as i64);
                        assert!(layout.bits() <= bits);
                    }
                }
            }
        }
    }
}

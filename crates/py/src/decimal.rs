//! The decimal text of packed integers of 64 bits.

use mintage_core::codec::as_chunks;

/// The most digits of an integer.
pub const DIGITS: usize = 20;

/// Calls `use_it` with the decimal text of each of packed integers, 8 bytes each in native order.
pub fn decimals(integers: &[u8], mut use_it: impl FnMut(&[u8])) {
    let mut decimal = itoa::Buffer::new();
    for integer in as_chunks(integers).0 {
        use_it(decimal.format(u64::from_ne_bytes(*integer)).as_bytes());
    }
}
